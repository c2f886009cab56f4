"""Files that survive kills, full disks and other processes."""

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias


# An object of JSON, such as the settings of a run or a row of its metrics.
Json: TypeAlias = dict[str, Any]
# What a file system without locks answers: some network file systems have none.
NO_LOCKS = errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP


def write_json(file: Path, value: Json) -> None:
    """Replace the contents of a file by JSON, in one step."""
    replace_text(file, json.dumps(value, indent=2) + "\n")


def replace_text(file: Path, text: str) -> None:
    """Replace the contents of a file, in one step."""
    with drafted(file) as draft:
        draft.write_text(text)


@contextlib.contextmanager
def drafted(file: Path) -> Iterator[Path]:
    """Replace a file in one step, by writing to the path that this context manager gives.

    The new contents are on disk when the context is left. If it is left by an error, or if the
    process is killed, the old contents stay.
    """
    # Processes of several hosts may have the same number, and threads of one process do.
    draft = file.with_name(f".{file.stem}.{secrets.token_hex(4)}.tmp{file.suffix}")
    try:
        with _naming(file):
            yield draft
            _sync(draft)
            os.replace(draft, file)
            _sync(file.parent)
    finally:
        draft.unlink(missing_ok=True)


def drafts(directory: Path) -> list[Path]:
    """The drafts in a directory: left behind by killed processes, or being written just now."""
    return list(directory.glob(".*.tmp*"))


def append_line(file: Path, line: str, *, size: int | None = None) -> None:
    """Add a line to a file. It is on disk when this returns.

    `size` is the number of bytes to keep of the file; all by default.
    """
    with _naming(file), open(file, "ab") as stream:
        if size is not None:
            stream.truncate(size)
        stream.write(line.encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def exclusive(file: Path, *, wait: bool = True, needed: bool = True) -> Iterator[None]:
    """Hold the lock `file`. A dead process holds no lock.

    If another process holds it, this waits, or raises a `BlockingIOError`. Unless the lock is
    `needed`, it is done without where the file system has none.
    """
    try:
        import fcntl
    except ImportError:
        # Windows has no such lock. Checksums show whether two processes disturbed each other.
        yield
        return
    with open(file, "a") as stream:
        try:
            with _naming(file):
                fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            if needed:
                why = (
                    f"its file system has no locks ({error.strerror}), without which processes "
                    "lose results of each other; choose a directory on a file system that has them"
                )
                raise OSError(error.errno, why, str(file)) from None
        yield


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Add the name of a file to errors that lack it, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(file)) from None
        raise
