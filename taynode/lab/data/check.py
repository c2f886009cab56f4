"""Comparing a file with its published checksum."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from .registry import RemoteFile


State: TypeAlias = Literal["ok", "missing", "truncated", "corrupt", "unreadable", "unknown"]


@dataclass(frozen=True)
class FileStatus:
    """The state of one file, its path, and what was expected and got."""

    name: str
    state: State
    path: Path | None
    detail: str


def sha256(path: Path) -> str:
    """The SHA-256 checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path | None, file: RemoteFile) -> FileStatus:
    """Compare a local copy with the published file. Without a path, the file is missing."""
    if path is None or not path.is_file():
        return FileStatus(file.name, "missing", None, f"expected {file.size} bytes, got no file")
    try:
        size = path.stat().st_size
        if size < file.size:
            detail = f"expected {file.size} bytes, got {size}"
            return FileStatus(file.name, "truncated", path, detail)
        found = sha256(path)
    except OSError as error:
        return FileStatus(file.name, "unreadable", path, str(error))
    if found != file.sha256:
        detail = f"expected SHA-256 {file.sha256}, got {found}"
        return FileStatus(file.name, "corrupt", path, detail)
    return FileStatus(file.name, "ok", path, f"{size} bytes, SHA-256 {found}")


def unknown(path: Path | None, names: tuple[str, ...]) -> FileStatus:
    """The status of a file that was fetched by hand and has no published checksum."""
    if path is None:
        return FileStatus(names[0], "missing", None, f"expected {' or '.join(names)}, got no file")
    detail = "there is no published checksum to compare with"
    if path.is_file():
        try:
            detail += f"; {path.stat().st_size} bytes, SHA-256 {sha256(path)}"
        except OSError as error:
            return FileStatus(path.name, "unreadable", path, str(error))
    return FileStatus(path.name, "unknown", path, detail)
