"""What a checkpoint consists of: a list of its files with their SHA-256, itself protected by one."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


MANIFEST = "manifest.json"
FORMAT = 1


class Damaged(Exception):
    """Why a checkpoint cannot be used."""


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def list_files(path: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of each file below a directory, all of them on disk afterwards."""
    files = {}
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = Path(folder, name)
            with open(file, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                size = stream.tell()
                os.fsync(stream.fileno())
            files[file.relative_to(path).as_posix()] = {"size": size, "sha256": digest}
        sync(Path(folder))
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
    """Write the manifest of a checkpoint: under its name only when it is whole and on disk."""
    unfinished = path / f"{MANIFEST}.new"
    with open(unfinished, "wb") as stream:
        stream.write(_encode(plain({"format": FORMAT, **content})))
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(unfinished, path / MANIFEST)
    sync(path)


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


def _encode(manifest: dict[str, Any]) -> bytes:
    body = json.dumps(manifest, indent=1)
    digest = hashlib.sha256(body.encode()).hexdigest()
    return (json.dumps({**manifest, "sha256": digest}, indent=1) + "\n").encode()


def _to_python(value: Any) -> Any:
    # Losses tend to arrive as scalars of NumPy or JAX.
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise TypeError(
        f"Checkpoints describe themselves in JSON, which has nothing for {value!r}, a "
        f"`{type(value).__name__}`. Arrays belong in `state`."
    )
