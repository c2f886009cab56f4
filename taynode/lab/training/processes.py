"""Several processes that train one model, from the point of view of one of them."""

import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

from ..launch import ADDRESS, COUNT, end_with_input, LAUNCHED, LOST, NUMBER, OTHER_SECONDS


class Wanted(NamedTuple):
    """What is to happen before the next steps: stop, save a checkpoint, and how many steps."""

    stop: bool
    save: bool
    block: int


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
    jax.distributed.initialize(**given, shutdown_timeout_seconds=int(OTHER_SECONDS))


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
        sys.stderr.write(f"error in process {jax.process_index()}: {message}\n")
        sys.stderr.flush()
        os._exit(code)
