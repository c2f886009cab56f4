"""Listing, fetching and verifying data sets."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from . import store
from .check import check, FileStatus as FileStatus, unknown
from .errors import DataError
from .progress import OnProgress
from .registry import data_set, DATA_SETS, DataSet


@dataclass(frozen=True)
class DataStatus:
    """An entry of the list of data sets.

    - `size`: the number of bytes to download.
    - `where`: the directories of its files, or `"not here"`.
    """

    name: str
    description: str
    size: int
    where: str
    license: str
    source: str


def list_data() -> list[DataStatus]:
    """All data sets and where they are. This compares the sizes of files, not their contents."""
    return [
        DataStatus(x.name, x.description, x.size, _where(x), x.license, x.source)
        for x in DATA_SETS.values()
    ]


def fetch(name: str, *, progress: OnProgress | None = None) -> list[Path]:
    """The verified files of a data set, downloaded if necessary.

    `progress` is as for `taynode.lab.data.store.locate`.

    Some data sets cannot be downloaded. If their files are missing, `DataError` says where to get
    them and where to put them.
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
    """Compare the sizes and checksums of all files of a data set with the published ones.

    Copies in `TAYNODE_DATA` come before those in the cache. Files that were fetched by hand are
    `"unknown"`, because they have no published checksum.
    """
    owner = data_set(name)
    if owner.by_hand:
        return [unknown(store.find(owner, names), names) for names in owner.by_hand]
    return [check(store.find(owner, (file.name,)), file) for file in owner.files]


def _where(owner: DataSet) -> str:
    if owner.package is not None:
        return f"in the package {owner.package}" if _installed(owner.package) else "not here"
    published = [(file, store.find(owner, (file.name,))) for file in owner.files]
    by_hand = [store.find(owner, names) for names in owner.by_hand]
    found = [path for file, path in published if path and path.stat().st_size == file.size]
    found += [path for path in by_hand if path]
    if not found:
        return "not here"
    folders = ", ".join(dict.fromkeys(str(path.parent) for path in found))
    num, total = len(found), len(owner.files) + len(owner.by_hand)
    return folders if num == total else f"{folders} ({num} of {total} files)"


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
