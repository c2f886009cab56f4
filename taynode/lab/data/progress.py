"""Progress of downloads."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias


# Called with the name of the file, the number of bytes received, and the size of the file.
OnProgress: TypeAlias = Callable[[str, int, int], None]


def silent(name: str, done: int, total: int) -> None:
    """Report nothing."""


@contextmanager
def reporting(progress: OnProgress | None) -> Iterator[OnProgress]:
    """The callback; if `None`, a bar if rich is installed and standard error is a terminal."""
    if progress is not None:
        yield progress
    elif importlib.util.find_spec("rich") is None or not sys.stderr.isatty():
        yield silent
    else:
        with _bar() as report:
            yield report


@contextmanager
def _bar() -> Iterator[OnProgress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress as Bar,
        TextColumn,
        TransferSpeedColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    tasks = {}
    with Bar(*columns, console=Console(stderr=True)) as bar:

        def report(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name)
            bar.update(tasks[name], completed=done, total=total)

        yield report
