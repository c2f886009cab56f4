"""Finding the files of a data set: in `TAYNODE_DATA`, in the cache, or on the network."""

import importlib.util
import os
from pathlib import Path

from .check import check, FileStatus
from .download import download
from .errors import DataError
from .progress import OnProgress, reporting
from .registry import data_set, DataSet


VARIABLE = "TAYNODE_DATA"


def local_folder() -> Path | None:
    """The folder that the environment variable `TAYNODE_DATA` names. Nothing is written to it."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    folder = Path(value).expanduser()
    # Otherwise a misspelled folder would start a download.
    if not folder.is_dir():
        raise DataError(f"{VARIABLE} is {value!r}, which is no folder. Correct it, or unset it.")
    return folder


def cache_folder() -> Path | None:
    """The folder for downloads, as usual on the system; `None` without pooch."""
    if importlib.util.find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("taynode"))


def find(data_set: DataSet, names: tuple[str, ...]) -> Path | None:
    """The first of these files or folders in `TAYNODE_DATA` or in the cache. It is not verified."""
    folders, cache = _local_folders(data_set), cache_folder()
    if cache is not None:
        folders.append(cache / data_set.folder)
    paths = (folder / name for name in names for folder in folders)
    return next((path for path in paths if path.exists()), None)


def _local_folders(data_set: DataSet) -> list[Path]:
    local = local_folder()
    return [] if local is None else [local / data_set.folder, local]


def locate(
    name: str,
    file_name: str,
    *,
    allow_download: bool = True,
    progress: OnProgress | None = None,
) -> Path:
    """The path of a verified file of a data set, downloaded to the cache if necessary.

    **Arguments:**

    - `name`, `file_name`: the names in the registry.
    - `allow_download`: whether a missing file may be downloaded.
    - `progress`: called during downloads with the name of the file, the number of bytes received
        and the size. By default a bar, if rich is installed and standard error is a terminal.

    Raises `DataError` if there is no such file, or if the copy in `TAYNODE_DATA` is damaged. That
    copy belongs to the user, so it is neither deleted nor ignored. A damaged copy in the cache is
    replaced.
    """
    owner = data_set(name)
    file = owner.file(file_name)
    path = find(owner, (file.name,))
    status = check(path, file)
    if status.state == "ok" and status.path is not None:
        return status.path
    problem = _problem(status)
    is_local = path is not None and path.parent in _local_folders(owner)
    if is_local or not allow_download:
        raise DataError(f"{problem} {_advice(owner, status)}")
    folder = cache_folder()
    if folder is None:
        raise DataError(f"{problem} Downloads need pooch: run `pip install 'taynode[data]'`.")
    try:
        with reporting(progress) as report:
            return download(file, folder / owner.folder / file.name, progress=report)
    except DataError as error:
        again = f"To try again, run `taynode data fetch {owner.name}`"
        raise DataError(f"{problem} {error} {again}, or {_elsewhere(owner)}") from error


def locate_by_hand(name: str) -> list[Path]:
    """The paths of files that the user has fetched, one for every group in the registry.

    The files have no checksum, so they are not verified. Raises `DataError` if one is missing.
    """
    owner = data_set(name)
    return [require_by_hand(owner, names) for names in owner.by_hand]


def require_by_hand(owner: DataSet, names: tuple[str, ...]) -> Path:
    """The first of these files or folders. Raises `DataError` if there is none."""
    path = find(owner, names)
    if path is not None:
        return path
    cache = cache_folder()
    place = "" if cache is None else f"put it into {cache / owner.folder}, or "
    raise DataError(
        f"{owner.name} is missing: got no {' or '.join(names)} in {_places()}. It has to be "
        f"fetched by hand: get it from {owner.source}, then {place}{_elsewhere(owner)}"
    )


def _problem(status: FileStatus) -> str:
    """The problem of a file, in words."""
    if status.path is None:
        return f"{status.name} is missing: {status.detail} in {_places()}."
    return f"{status.path} is {status.state}: {status.detail}."


def _places() -> str:
    """The searched folders, in words."""
    local, cache = local_folder(), cache_folder()
    places = f"{VARIABLE} ({'not set' if local is None else local})"
    return places if cache is None else f"{places} and the cache ({cache})"


def _advice(owner: DataSet, status: FileStatus) -> str:
    """What the user can do."""
    if status.state == "unreadable":
        return "Make it readable, or delete it."
    if status.state == "missing":
        return f"Run `taynode data fetch {owner.name}`, or {_elsewhere(owner)}"
    return f"Delete it, then run `taynode data fetch {owner.name}` or put the published file there."


def _elsewhere(owner: DataSet) -> str:
    return f"set {VARIABLE} to a folder that has it, flat or in a subfolder {owner.folder}."
