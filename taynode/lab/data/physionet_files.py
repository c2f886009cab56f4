"""The files of PhysioNet 2012, in archives or in a folder. Nothing is unpacked to disk."""

import gzip
import hashlib
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .check import sha256
from .errors import DataError


_PATIENT = re.compile(r"\d+\.txt")
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    # zipfile raises it for encrypted members and for unknown compression.
    RuntimeError,
)


def patient_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the patients in a tar, a zip or a folder. Other files are skipped.

    Raises `DataError` if the archive is damaged or has no patients.
    """
    if path.is_dir():
        files = _in_folder(path)
    else:
        files = _in_zip(path) if path.suffix == ".zip" else _in_tar(path)
    num = 0
    try:
        for name, content in files:
            yield f"{path}/{name}", content
            num += 1
    except _DAMAGED as error:
        advice = "Delete it, and get it again."
        raise DataError(f"{path} is truncated or corrupt: {error}. {advice}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    if num == 0:
        expected = "expected files named by a number, such as 132539.txt"
        raise DataError(f"{path} has no patients: {expected}. Put the published files there.")


def digest(path: Path) -> str:
    """A checksum of an archive, or of the patients in a folder."""
    if path.is_file():
        try:
            return sha256(path)
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error}.") from error
    total = hashlib.sha256()
    for name, content in patient_files(path):
        total.update(f"{PurePosixPath(name).name} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _is_patient(name: str) -> bool:
    return _PATIENT.fullmatch(PurePosixPath(name).name) is not None


def _in_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path.rglob("*.txt")):
        if _is_patient(file.name):
            yield file.name, file.read_bytes()


def _in_tar(path: Path) -> Iterator[tuple[str, bytes]]:
    data = path.read_bytes()
    # Decompressing everything verifies the checksums of gzip and xz.
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:6] == b"\xfd7zXZ\0":
        data = lzma.decompress(data)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and _is_patient(member.name):
                yield member.name, content.read()
        # tarfile takes damage for the end of the archive, which is a block of zeros.
        if data[archive.offset : archive.offset + tarfile.BLOCKSIZE] != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"no file begins at byte {archive.offset}, as one should")


def _in_zip(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and _is_patient(member.filename):
                yield member.filename, archive.read(member)
