"""Several processes that train one model, from the point of view of one of them."""

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils

from ..config import ConfigError
from ..launch import ADDRESS, COUNT, end_with_input, LAUNCHED, LOST, NUMBER, OTHER_SECONDS


class Wanted(NamedTuple):
    """What is to happen before the next steps: stop, save a checkpoint, and how many steps."""

    stop: bool
    save: bool
    block: int


class PeerError(Exception):
    """Another process has failed, and has said why."""


def number() -> int:
    """The number of processes, before any of them has joined. The cluster may know of more."""
    return int(os.environ.get(COUNT, 1))


def is_first() -> bool:
    """Whether this process writes."""
    return jax.process_index() == 0


def of_all(*values: int) -> np.ndarray:
    """These numbers of all processes, a row for each. All processes have to call this."""
    own = np.array(values, np.int32)
    return own[None] if jax.process_count() == 1 else multihost_utils.process_allgather(own)


def agreed(wanted: Wanted) -> Wanted:
    """What all processes do. Clocks differ: it is what the first one wants, but any may stop."""
    table = of_all(*wanted)
    return Wanted(bool(table[:, 0].any()), bool(table[0, 1]), int(table[0, 2]))


def agree_on(what: str, digest: str) -> None:
    """Raise an error unless all processes have the same digest of something, a hexadecimal one."""
    table = of_all(*(int(digest[i : i + 6], 16) for i in (0, 6)))
    others = [str(i) for i in np.flatnonzero((table != table[0]).any(axis=1))]
    if others:
        raise ConfigError(
            f"The {what} of process {', '.join(others)} differ from those of process 0: start all "
            "processes with the same command and the same files."
        )


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Raise an error in all processes if one of them raises one, so that none waits for it.

    All of them have to come here, and must not wait for each other inside.
    """
    error = None
    try:
        yield
    except jax.errors.JaxRuntimeError:
        # The others may be gone.
        raise
    except Exception as found:
        error = found
    # With the same exit code.
    codes = of_all(2 if isinstance(error, ConfigError) else int(error is not None))[:, 0]
    if error is not None:
        raise error
    if codes.any():
        kind = ConfigError if codes.max() == 2 else PeerError
        raise kind(f"Process {int(codes.argmax())} has failed, and says why.")


def join() -> None:
    """Become one of several processes, if `taynode launch` says so."""
    if LAUNCHED not in os.environ or jax.distributed.is_initialized():
        return
    threading.Thread(target=end_with_input, daemon=True).start()
    given = {}
    if ADDRESS in os.environ:
        address, number = os.environ[ADDRESS], int(os.environ[NUMBER])
        given = {"coordinator_address": address, "process_id": number}
        given["num_processes"] = int(os.environ[COUNT])
        # All are on this machine, and nobody else may join.
        given["coordinator_bind_address"] = address if number == 0 else None
        given["cluster_detection_method"] = "deactivate"
    try:
        jax.distributed.initialize(**given, shutdown_timeout_seconds=int(OTHER_SECONDS))
    except jax.errors.JaxRuntimeError as error:
        # Such as a port that another program has taken, or a peer that does not come.
        _end(LOST, os.environ.get(NUMBER, "of this host"), f"it cannot join the others: {error}")
    except (ValueError, RuntimeError) as error:
        raise ConfigError(
            f"JAX finds no cluster that this process is a part of: {error} Pass `-n` for processes "
            "of this machine, or start this one with srun, for example."
        ) from None


@contextlib.contextmanager
def one_of_several(explain) -> Iterator[None]:
    """End this process at once if it fails, since JAX would wait for its peers at its end.

    `explain` returns the exit code, or `None`, and the message of an error.
    """
    try:
        yield
    except KeyboardInterrupt:
        # All of them stop together, and the first one says so.
        if jax.process_count() > 1 and not is_first():
            sys.exit(130)
        raise
    except Exception as error:
        if jax.process_count() == 1:
            raise
        code, message = explain(error)
        if code is None:
            # Collectives without peers raise errors of several types. A bug ends the launcher, too,
            # after it has occurred a few times.
            is_known = isinstance(error, jax.errors.JaxRuntimeError)
            code, message = LOST, str(error) if is_known else traceback.format_exc()
        _end(code, jax.process_index(), message)


def _end(code: int, number: int | str, message: str) -> NoReturn:
    """End this process at once, without waiting for its peers."""
    sys.stderr.write(f"error in process {number}: {message}\n")
    sys.stderr.flush()
    os._exit(code)
