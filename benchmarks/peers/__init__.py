"""Solves and their gradients in other libraries, in turn on the same core.

PyTorch has an environment of its own, which is made at the first call. To use another one, let
`TAYNODE_TORCH_PYTHON` name its Python.
"""

import json
import pathlib
import statistics
import subprocess
import sys
from typing import Any

from rich.console import Console
from rich.progress import Progress

from .environment import torch_python
from .problems import Problem, PROBLEMS


ROUNDS = 9
# How long a contender runs in a round.
SECONDS = 0.1
TORCH_SIDE = pathlib.Path(__file__).with_name("torch_side.py")


class Side:
    """A process with contenders, which run when they are told to."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        described = self._read()
        self.about, self.contenders = described["about"], described["contenders"]

    def run(self, name: str, repeats: int) -> float:
        """The seconds of a run, as a mean over some."""
        return self._ask({"what": "time", "name": name, "repeats": repeats})

    def memory(self, name: str) -> int | None:
        """The bytes of a run at its peak."""
        return self._ask({"what": "memory", "name": name})

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _ask(self, command: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} ended with {self.process.wait()}.")
        return json.loads(line)


def measure(name: str, problem: Problem, torch: str | None, console: Console) -> str:
    """A table: each contender's times, in milliseconds and in units of the vector field."""
    sides = [Side([sys.executable, "-m", "benchmarks.peers.jax_side", name])]
    if torch is not None:
        sides.append(Side([torch, str(TORCH_SIDE), name]))
    every = {each: side for side in sides for each in side.contenders}
    repeats = {each: max(1, int(SECONDS / side.run(each, 1))) for each, side in every.items()}
    times: dict[str, list[float]] = {each: [] for each in every}
    with Progress(console=console, transient=True) as progress:
        for _ in progress.track(range(ROUNDS), description=problem.title):
            for each, side in every.items():
                times[each].append(side.run(each, repeats[each]))
    peaks = {each: side.memory(each) for each, side in every.items()}
    counts = {each: side.contenders[each]["nfe"] for each, side in every.items()}
    for side in sides:
        side.close()
    titles = list(dict.fromkeys(each.rpartition(" ")[0] for each in every if "unit " not in each))
    lines = [
        f"#### {problem.title}\n\n{'; '.join(side.about for side in sides)}.\n",
        "| | NFE | forward, ms | / (NFE f) | gradient, ms | / (NFE gradient of f) | "
        "of diffrax's | peak, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for title in titles:
        nfe = counts[f"{title} gradient"]
        cells = [title, str(nfe or "-")]
        for kind in ("forward", "gradient"):
            found = times.get(f"{title} {kind}")
            if found is None:
                cells += ["-", "-"]
                continue
            unit = [u / counts[f"unit {kind}"] for u in times[f"unit {kind}"]]
            ratio = statistics.median(t / u for t, u in zip(found, unit, strict=True))
            cells += [f"{1e3 * statistics.median(found):.2f}", f"{ratio / nfe:.2f}" if nfe else "-"]
        pairs = zip(times[f"{title} gradient"], times["diffrax gradient"], strict=True)
        peak = peaks[f"{title} gradient"]
        cells.append(f"{statistics.median(a / b for a, b in pairs):.2f}")
        cells.append("-" if peak is None else f"{peak / 1e6:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    unit = statistics.median(
        f / g for f, g in zip(times["unit forward"], times["unit gradient"], strict=True)
    )
    lines.append(
        f"\nAt least {1 + unit:.2f} if each step is computed once more in the reverse pass."
    )
    return "\n".join(lines)


def sections(console: Console) -> list[str]:
    """All tables."""
    torch = torch_python(console)
    tables = []
    for name, problem in PROBLEMS.items():
        tables.append(measure(name, problem, torch, console))
        # All of them take a quarter of an hour.
        console.print(tables[-1], markup=False, highlight=False)
    return tables
