"""How a download reports how far it is."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias


# Called with the name of the file, the bytes that are there, and the bytes that there will be.
Progress: TypeAlias = Callable[[str, int, int], None]


def silent(name: str, done: int, total: int) -> None:
    """Report nothing."""


@contextmanager
def reporting(progress: Progress | None) -> Iterator[Progress]:
    """The given callback; with `None`, a bar if rich is installed and someone is watching."""
    if progress is not None:
        yield progress
    elif importlib.util.find_spec("rich") is None or not sys.stderr.isatty():
        yield silent
    else:
        with _bar() as report:
            yield report


@contextmanager
def _bar() -> Iterator[Progress]:
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
