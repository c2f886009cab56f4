"""Whether a directory is on a file system that all machines share."""

import contextlib
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def marked(root: Path) -> Iterator[Path]:
    """Write a file with a random name to a directory, and remove it in the end.

    A machine sees the file if it shares the directory with this one.
    """
    root.mkdir(parents=True, exist_ok=True)
    mark = root.resolve() / f".shared-{secrets.token_hex(8)}"
    mark.touch()
    try:
        yield mark
    finally:
        mark.unlink(missing_ok=True)


def is_listed(path: Path) -> bool:
    """Whether this machine sees a file."""
    # Network file systems tell others about a new file only when they list its directory.
    return path.parent.is_dir() and path.name in {each.name for each in path.parent.iterdir()}


def why_not_shared(mark: str) -> str:
    """Why this machine cannot use the directory of a mark; empty if it can."""
    path = Path(mark)
    if is_listed(path):
        return ""
    return (
        f"{socket.gethostname()} does not share {path.parent} with the machine that runs this "
        "command: choose a directory on a file system that all nodes share."
    )
