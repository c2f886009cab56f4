"""Arrays on disk, by orbax: the one place that knows it."""

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


# Some room for what orbax writes besides the arrays.
SPARE_BYTES, SPARE_BYTES_PER_ARRAY = 65536, 1024


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to a new directory; whatever goes wrong is an `OSError`."""
    size = sum(array.nbytes + SPARE_BYTES_PER_ARRAY for array in arrays.values())
    _reserve(path.with_name(f"{path.name}.room"), size + SPARE_BYTES)
    with _quiet():
        checkpointer = _checkpointer()
        try:
            checkpointer.save(path.absolute(), arrays)
        except Exception as error:
            # tensorstore raises a `ValueError` and gives the number of the error in its text.
            number = re.search(r"os_error_code='(\d+)'", str(error))
            code = getattr(error, "errno", None) or (int(number[1]) if number else errno.EIO)
            raise OSError(code, str(error)) from error


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote."""
    with _quiet():
        return _checkpointer().restore(path.absolute())


def _reserve(file: Path, size: int) -> None:
    """Fail now if there is no room.

    Running out of room halfway, orbax raises one error and leaves other writes to fail later, each
    with a traceback on the terminal. Unlike a look at the free space, this also respects quotas.
    """
    with open(file, "wb") as stream:
        if hasattr(os, "posix_fallocate"):  # not on macOS
            os.posix_fallocate(stream.fileno(), 0, size)
    file.unlink()


@functools.cache
def _checkpointer() -> Any:
    """Few large files whatever the number of arrays: each file costs a wait for the disk.

    Parameters hardly compress, and trying takes longer than all the rest.
    """
    # Importing orbax makes the root logger print to the terminal.
    root = logging.getLogger()
    before = list(root.handlers)
    try:
        import orbax.checkpoint as ocp
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Checkpoints are stored by orbax: install `taynode[train]`.", name=error.name
        ) from error
    finally:
        root.handlers[:] = before
    return ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=True, use_compression=False))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No log of orbax on the terminal: what goes wrong is raised as well."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
