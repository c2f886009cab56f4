"""A process that runs what another one asks for. It knows neither JAX nor PyTorch.

Libraries that cannot live in one environment are so measured in turn: each waits in a process of
its own, and one at a time is told to run. Commands and answers are lines of JSON.
"""

import ctypes
import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO


class Contender(NamedTuple):
    """A way to solve.

    - `run`: solve, or compute a gradient, or something to compare with, and wait for its end.
    - `nfe`: the evaluations of the vector field in it; 0 if they are not known.
    - `seconds`: of compilation.
    """

    run: Callable[[], object]
    nfe: int
    seconds: float = 0.0


def serve(contenders: dict[str, Contender], about: str) -> None:
    """Describe the contenders, and run them as told until the input ends."""
    # Nothing else may write to the channel of answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    known = {name: {"nfe": x.nfe, "compile": x.seconds} for name, x in contenders.items()}
    _answer(answers, {"about": about, "contenders": known})
    for line in sys.stdin:
        command = json.loads(line)
        run = contenders[command["name"]].run
        if command["what"] == "memory":
            _answer(answers, _memory(run))
            continue
        start = time.perf_counter()
        for _ in range(command["repeats"]):
            run()
        _answer(answers, (time.perf_counter() - start) / command["repeats"])


def _answer(stream: TextIO, value: Any) -> None:
    stream.write(json.dumps(value) + "\n")
    stream.flush()


def _memory(run: Callable[[], object]) -> int | None:
    """The bytes that a run takes at its peak, in addition to what the process has before."""
    run()
    gc.collect()
    try:
        # What was freed goes back to the system, so that it is counted when it is taken again.
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = _status("VmRSS")
        run()
        return 1024 * (_status("VmHWM") - before)
    except (AttributeError, OSError):
        # Only Linux tells.
        return None


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))
