"""Directories that appear and vanish in one go, whenever the process is killed."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from .manifest import sync


UNFINISHED, LOCK = ".unfinished_", ".lock"
NAME = re.compile(r"step_(\d+)(?:\.(\d+))?")


class Busy(Exception):
    """Another process is at work."""


def entries(directory: Path) -> list[tuple[int, int, Path]]:
    """Step, attempt and path of all that is finished, the newest first."""
    try:
        paths = list(directory.iterdir())
    except FileNotFoundError:
        return []
    names = [(NAME.fullmatch(path.name), path) for path in paths]
    return sorted([(int(n[1]), int(n[2] or 0), path) for n, path in names if n], reverse=True)


def new_name(directory: Path, step: int) -> str:
    """A name for a step. None is used twice, since a directory cannot be replaced in one go."""
    attempts = [attempt + 1 for other, attempt, _ in entries(directory) if other == step]
    return f"step_{step:09d}" + (f".{max(attempts)}" if attempts else "")


def make(directory: Path) -> None:
    """Make a directory, and those above it, unless it exists."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    sync(*(path.parent for path in missing))


@contextlib.contextmanager
def create(final: Path) -> Iterator[Path]:
    """A directory to fill, renamed at the end; or removed, if anything goes wrong.

    Whoever fills it sees to it that the contents are on disk.
    """
    unfinished = final.with_name(f"{UNFINISHED}{final.name}")
    try:
        unfinished.mkdir()
        yield unfinished
        os.rename(unfinished, final)
        sync(final, final.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def discard(paths: list[Path]) -> None:
    """Delete directories of one parent: a kill leaves each of them whole or gone."""
    unfinished = [path.with_name(f"{UNFINISHED}{path.name}") for path in paths]
    for path, renamed in zip(paths, unfinished, strict=True):
        os.rename(path, renamed)
    if paths:
        sync(paths[0].parent)
    for renamed in unfinished:
        shutil.rmtree(renamed)


def leftovers(directory: Path) -> list[Path]:
    """What was unfinished when a process was killed, unless that is still at work."""
    return list(directory.glob(f"{UNFINISHED}*"))


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Only one process at a time, left-overs of earlier ones removed; raises `Busy`.

    The lock goes with the process, however it ends.
    """
    handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy from None
        except OSError:
            # Some network file systems have no locks: then it is up to the user.
            pass
        for path in leftovers(directory):
            shutil.rmtree(path)
        yield
    finally:
        os.close(handle)
