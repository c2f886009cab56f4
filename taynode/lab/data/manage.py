"""What is behind `taynode data list`, `fetch` and `verify`."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from . import store
from .check import check, FileStatus as FileStatus, unknown
from .errors import DataError
from .progress import Progress
from .registry import data_set, DATA_SETS, DataSet


@dataclass(frozen=True)
class DataStatus:
    """A data set as it is listed: `size` in bytes, and `where` it was found or `"not here"`."""

    name: str
    description: str
    size: int
    where: str
    license: str
    source: str


def list_data() -> list[DataStatus]:
    """All data sets and where they are. Looks at the sizes of files, not at their content."""
    return [
        DataStatus(x.name, x.description, x.size, _where(x), x.license, x.source)
        for x in DATA_SETS.values()
    ]


def fetch(name: str, *, progress: Progress | None = None) -> list[Path]:
    """Make sure that all files of a data set are here and intact; returns where they are.

    `progress` is called during downloads with the name of the file, the bytes received and the
    size. By default a bar is shown, if rich is installed and standard error is a terminal.

    Some data sets cannot be downloaded by this library; then `DataError` tells where to get them
    and where to put them.
    """
    owner = data_set(name)
    if owner.package is not None and not _installed(owner.package):
        raise DataError(
            f"The data set {name} is part of the package {owner.package}, which is missing. "
            "Run `pip install 'taynode[data]'`."
        )
    if owner.by_hand:
        return store.locate_by_hand(name)
    return [store.locate(name, file.name, progress=progress) for file in owner.files]


def verify(name: str) -> list[FileStatus]:
    """Compare size and checksum of all files of a data set with what was published.

    Checks the copies that would be used: those in `TAYNODE_DATA` before those in the cache. Files
    that were fetched by hand are `"unknown"`, for there is nothing to compare them with.
    """
    owner = data_set(name)
    if owner.by_hand:
        return [unknown(store.find_by_hand(owner, names), names) for names in owner.by_hand]
    return [check(store.find(owner, file), file) for file in owner.files]


def _where(owner: DataSet) -> str:
    if owner.package is not None:
        return f"in the package {owner.package}" if _installed(owner.package) else "not here"
    found = []
    for file in owner.files:
        path = store.find(owner, file)
        if path is not None and path.stat().st_size == file.size:
            found.append(path)
    for names in owner.by_hand:
        path = store.find_by_hand(owner, names)
        if path is not None:
            found.append(path)
    if not found:
        return "not here"
    folders = ", ".join(dict.fromkeys(str(path.parent) for path in found))
    num, total = len(found), len(owner.files) + len(owner.by_hand)
    return folders if num == total else f"{folders} ({num} of {total} files)"


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
