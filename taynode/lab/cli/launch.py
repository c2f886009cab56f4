"""`taynode launch`."""

import sys
from typing import Annotated

from cyclopts import Parameter

from ..launch import Launcher


def launch(
    *command: str,
    n: Annotated[int | None, Parameter(name="-n")] = None,
    timeout: float = 300.0,
) -> None:
    """Train in several processes, which are started again if one of them fails.

    On one machine: taynode launch -n 2 -- train digits. With SLURM: srun taynode launch -- train
    digits, in which each task is one process.

    Parameters
    ----------
    command
        What to launch, after --, such as train digits.
    n
        Number of processes on this machine. By default, this is one process of a cluster that JAX
        detects, such as SLURM.
    timeout
        Seconds without a step after which all processes are ended and start again.

    """
    say = lambda message: print(message, file=sys.stderr, flush=True)
    if code := Launcher(command, n, timeout, say).run():
        sys.exit(code)
