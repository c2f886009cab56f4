"""What a checkpoint consists of: a list of its files with their SHA-256, protected by its own."""

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


MANIFEST = "manifest.json"
FORMAT = 1


class Damaged(Exception):
    """Why a checkpoint cannot be used."""


def sync(*paths: Path) -> None:
    """Wait until files, and the names in directories, are on disk."""
    # At once, not in turn: the disk can then write them together, which is much faster.
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(_sync, paths))


def list_files(path: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of each file below a directory."""
    files = {}
    for file in sorted(path.rglob("*")):
        if file.is_file():
            with open(file, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                size = stream.tell()
            files[file.relative_to(path).as_posix()] = {"size": size, "sha256": digest}
    return files


def check_files(path: Path, manifest: dict[str, Any]) -> None:
    """Compare the files of a checkpoint with its manifest; raises `Damaged`."""
    for name, expected in manifest["files"].items():
        try:
            with open(path / name, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size != expected["size"]:
                    raise Damaged(f"`{name}` has {size} bytes instead of {expected['size']}")
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            raise Damaged(f"`{name}` is missing") from None
        except OSError as error:
            raise Damaged(f"`{name}` cannot be read: {error}") from error
        if digest != expected["sha256"]:
            raise Damaged(f"the contents of `{name}` have changed: its SHA-256 is another one")


def write_manifest(path: Path, content: dict[str, Any]) -> None:
    """Write the manifest of a checkpoint, under its name only when all the rest is on disk."""
    unfinished = path / f"{MANIFEST}.new"
    manifest = plain({"format": FORMAT, **content, "files": list_files(path)})
    unfinished.write_bytes(_encode(manifest))
    sync(path, *path.rglob("*"))
    os.replace(unfinished, path / MANIFEST)


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint; raises `Damaged`."""
    try:
        data = (path / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise Damaged(f"it is incomplete: there is no `{MANIFEST}`") from None
    except OSError as error:
        raise Damaged(f"`{MANIFEST}` cannot be read: {error}") from error
    changed = f"the contents of `{MANIFEST}` have changed"
    try:
        manifest = json.loads(data)
        del manifest["sha256"]
        # Byte by byte, so that not even a changed space goes unnoticed.
        unchanged = _encode(manifest) == data
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Damaged(changed) from None
    if not unchanged:
        raise Damaged(changed)
    if manifest["format"] != FORMAT:
        raise Damaged(f"it has format {manifest['format']}, and only format {FORMAT} is known")
    return manifest


def plain(content: Any) -> Any:
    """What JSON makes of a value: tuples become lists, keys become strings."""
    return json.loads(json.dumps(content, default=_to_python))


def differences(here: Any, there: Any, name: str = "") -> Iterator[str]:
    """The entries in which two nested dictionaries differ, in words."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in dict.fromkeys([*here, *there]):
            inner = f"{name}.{key}" if name else str(key)
            yield from differences(here.get(key, "(unset)"), there.get(key, "(unset)"), inner)
    elif here != there:
        yield f"`{name}` is {here!r} here and {there!r} there"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _encode(manifest: dict[str, Any]) -> bytes:
    # On one line: indented JSON takes several times as long, and a state may have many leaves.
    body = json.dumps(manifest)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f'{body[:-1]}, "sha256": "{digest}"}}\n'.encode()


def _to_python(value: Any) -> Any:
    # Losses tend to arrive as scalars of NumPy or JAX.
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise TypeError(
        f"Checkpoints describe themselves in JSON, which has nothing for {value!r}, a "
        f"`{type(value).__name__}`. Arrays belong in `state`."
    )
