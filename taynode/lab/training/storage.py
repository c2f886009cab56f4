"""Bytes on disk, by orbax: the one place that knows it."""

import contextlib
import errno
import functools
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


# Room for what orbax writes besides the data.
SPARE_BYTES = 65536


def write_bytes(path: Path, data: np.ndarray) -> None:
    """Write data to a new directory; whatever goes wrong is an `OSError`."""
    path.mkdir()
    _reserve(path / "room", data.nbytes + SPARE_BYTES)
    with _quiet():
        directory, handler = _orbax(path)
        try:
            handler.save(directory, {"data": data})
            handler.finalize(directory)
        except Exception as error:
            # tensorstore raises a `ValueError`, with the number of the error in its text.
            number = re.search(r"os_error_code='(\d+)'", str(error))
            code = getattr(error, "errno", None) or (int(number[1]) if number else errno.EIO)
            raise OSError(code, str(error)) from error


def read_bytes(path: Path) -> np.ndarray:
    """Read what `write_bytes` wrote."""
    with _quiet():
        directory, handler = _orbax(path)
        return handler.restore(directory)["data"]


def _reserve(file: Path, size: int) -> None:
    """Fail now if there is no room; unlike a look at the free space, this respects quotas."""
    with open(file, "wb") as stream:
        if hasattr(os, "posix_fallocate"):  # not on macOS
            os.posix_fallocate(stream.fileno(), 0, size)
    file.unlink()


def _orbax(path: Path) -> tuple[Any, Any]:
    """A path as orbax wants it, and what writes and reads there."""
    try:
        from etils import epath
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Checkpoints are stored by orbax: install `taynode[train]`.", name=error.name
        ) from error
    return epath.Path(path.absolute()), _handler()


@functools.cache
def _handler() -> Any:
    """Plain zarr: the fewest files, since each costs a wait for the disk.

    Parameters hardly compress, and trying takes longer than all the rest.
    """
    import orbax.checkpoint as ocp

    return ocp.PyTreeCheckpointHandler(use_ocdbt=False, use_compression=False)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Orbax logs much, of which all that matters is raised as well."""
    root, logger = logging.getLogger(), logging.getLogger("absl")
    handlers, level = list(root.handlers), logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
        # The first message makes the root logger print everybody's warnings to the terminal.
        root.handlers[:] = handlers
