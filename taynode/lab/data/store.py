"""Where the files of a data set are: in `TAYNODE_DATA`, in the cache, or on the network."""

import importlib.util
import os
from pathlib import Path

from .check import check, FileStatus
from .download import download
from .errors import DataError
from .progress import Progress, reporting
from .registry import data_set, DataSet, RemoteFile


VARIABLE = "TAYNODE_DATA"


def local_folder() -> Path | None:
    """The folder that the environment variable `TAYNODE_DATA` names. Nothing is written to it."""
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    folder = Path(value).expanduser()
    # Else a spelling mistake would be a download.
    if not folder.is_dir():
        raise DataError(f"{VARIABLE} is {value!r}, which is no folder. Correct it, or unset it.")
    return folder


def cache_folder() -> Path | None:
    """The folder for downloads, where the system wants it; nothing without pooch."""
    if importlib.util.find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("taynode"))


def find_local(data_set: DataSet, file: RemoteFile) -> Path | None:
    """The copy in `TAYNODE_DATA`, in a subfolder or flat; not checked."""
    folder = local_folder()
    if folder is None:
        return None
    candidates = folder / data_set.folder / file.name, folder / file.name
    return next((path for path in candidates if path.is_file()), None)


def find_cached(data_set: DataSet, file: RemoteFile) -> Path | None:
    """The copy in the cache; not checked."""
    folder = cache_folder()
    path = None if folder is None else folder / data_set.folder / file.name
    return path if path is not None and path.is_file() else None


def find(data_set: DataSet, file: RemoteFile) -> Path | None:
    """The copy that would be used, if there is one; not checked."""
    return find_local(data_set, file) or find_cached(data_set, file)


def locate(
    name: str, file_name: str, *, allow_download: bool = True, progress: Progress | None = None
) -> Path:
    """Path of a verified file of a data set, downloaded into the cache if need be.

    **Arguments:**

    - `name`, `file_name`: as in the registry.
    - `allow_download`: whether the network may be used.
    - `progress`: called during downloads with the name of the file, the bytes received and the
        size. By default a bar, if rich is installed and standard error is a terminal.

    Raises `DataError` if there is no such file, or if the copy in `TAYNODE_DATA` is damaged. That
    copy belongs to the user, so it is neither deleted nor passed over; a damaged copy in the cache
    is replaced.
    """
    owner = data_set(name)
    file = owner.file(file_name)
    local = find_local(owner, file)
    status = check(local or find_cached(owner, file), file)
    if status.state == "ok" and status.path is not None:
        return status.path
    problem = _problem(status)
    if local is not None or not allow_download:
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


def find_by_hand(data_set: DataSet, names: tuple[str, ...]) -> Path | None:
    """The first of these files or folders that is in `TAYNODE_DATA` or in the cache."""
    local, cache = local_folder(), cache_folder()
    folders = [] if local is None else [local / data_set.folder, local]
    if cache is not None:
        folders.append(cache / data_set.folder)
    paths = (folder / name for name in names for folder in folders)
    return next((path for path in paths if path.exists()), None)


def locate_by_hand(name: str) -> list[Path]:
    """Paths of what the user has put there, one for every group of names in the registry.

    Nothing is downloaded, and there is no checksum to compare with. Raises `DataError` if
    something is missing.
    """
    owner = data_set(name)
    return [require_by_hand(owner, names) for names in owner.by_hand]


def require_by_hand(owner: DataSet, names: tuple[str, ...]) -> Path:
    """The first of these files or folders; raises `DataError` if there is none."""
    path = find_by_hand(owner, names)
    if path is not None:
        return path
    cache = cache_folder()
    place = "" if cache is None else f"put it into {cache / owner.folder}, or "
    raise DataError(
        f"{owner.name} is missing: got no {' or '.join(names)} in {_places()}. It has to be "
        f"fetched by hand: get it from {owner.source}, then {place}{_elsewhere(owner)}"
    )


def _problem(status: FileStatus) -> str:
    """What is wrong with a file."""
    if status.path is None:
        return f"{status.name} is missing: {status.detail} in {_places()}."
    return f"{status.path} is {status.state}: {status.detail}."


def _places() -> str:
    """Where was looked."""
    local, cache = local_folder(), cache_folder()
    places = f"{VARIABLE} ({'not set' if local is None else local})"
    return places if cache is None else f"{places} and the cache ({cache})"


def _advice(owner: DataSet, status: FileStatus) -> str:
    """What to do about it."""
    if status.state == "unreadable":
        return "Make it readable, or delete it."
    if status.state == "missing":
        return f"Run `taynode data fetch {owner.name}`, or {_elsewhere(owner)}"
    return f"Delete it, then run `taynode data fetch {owner.name}` or put the published file there."


def _elsewhere(owner: DataSet) -> str:
    return f"set {VARIABLE} to a folder that has it, flat or in a subfolder {owner.folder}."
