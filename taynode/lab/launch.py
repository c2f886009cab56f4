"""Several processes that train one model: they are started, watched, and started again.

A process whose peer is gone or stuck waits for it forever, or fails. The cure is to end all of
them, to start all of them again, and to continue from the newest checkpoint. This module does not
import JAX.
"""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .config import ConfigError, positive


# What the launcher tells a process: that it is one of several; its number, the number of all, and
# the address of the first, unless the cluster knows them; and the file of its progress.
LAUNCHED, NUMBER, COUNT, ADDRESS, PROGRESS = (
    f"TAYNODE_LAUNCH{name}" for name in ("ED", "_PROCESS", "_PROCESSES", "_ADDRESS", "_PROGRESS")
)
# The exit code of a process that has lost its peers, EX_TEMPFAIL of sysexits.h; and after Ctrl-C.
LOST, STOPPED = 75, 130
# Failures in a row without a step of progress.
MOST_FAILURES = 3
# Outside of training, for imports, compilation and the record of samples.
OTHER_SECONDS = 1200.0
SECONDS_BETWEEN_LOOKS, SECONDS_FOR_OTHERS = 0.1, 2.0


class LaunchError(Exception):
    """Processes fail again and again."""


@dataclasses.dataclass(frozen=True)
class Launcher:
    """Starts processes until they have ended well.

    - `command`: the words of the command, such as `["train", "digits"]`.
    - `number`: the number of processes on this machine; `None` for a single one of a cluster, which
        JAX finds by the variables of SLURM and others.
    - `timeout`: seconds without a step after which processes are ended.
    - `say`: told what happens.
    """

    command: Sequence[str]
    number: int | None = None
    timeout: float = 300.0
    say: Callable[[str], object] = print

    def __post_init__(self):
        if self.number is not None:
            positive("n", self.number)
        positive("timeout", self.timeout)
        if not self.command or self.command[0] != "train":
            given = " ".join(self.command) or "nothing"
            raise ConfigError(
                "`launch` needs a command to train after `--`, such as "
                f"`taynode launch -n 2 -- train digits`; got {given}."
            )

    def run(self) -> int:
        """Train to the end, and return the exit code.

        Ctrl-C is handed on to the processes, and then none of them starts again. A second one kills
        them.
        """
        interrupts: list[int] = []
        previous = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
        try:
            return self._run(interrupts)
        finally:
            signal.signal(signal.SIGINT, previous)

    def _run(self, interrupts: list[int]) -> int:
        failures, farthest, words = 0, -1, list(self.command)
        while True:
            with tempfile.TemporaryDirectory(prefix="taynode-launch-") as folder:
                group = _Group(words, self.number, Path(folder))
                code, reason = group.wait(self.timeout, interrupts)
            if not reason:
                return code
            if interrupts:
                return STOPPED
            if (step := max(group.steps())) > farthest:
                failures, farthest = 0, step
            failures += 1
            if failures > MOST_FAILURES:
                raise LaunchError(
                    f"{reason} This happened {failures} times without a step of progress."
                )
            begun = group.has_begun()
            where = "from the newest checkpoint" if begun else "from the beginning"
            self.say(f"{reason} All processes start again, {where}.")
            # A run that was there before is not continued unless the command says so.
            if begun and "--resume" not in words:
                words.append("--resume")


class _Group:
    """Processes that live and die together."""

    def __init__(self, words: Sequence[str], number: int | None, folder: Path):
        # Whether no process is under another launcher.
        self.is_alone = number is not None
        count = number or 1
        self.files = [folder / str(i) for i in range(count)]
        self.known = [(-1, "") for _ in self.files]
        port = _free_port()
        self.processes = []
        for i, file in enumerate(self.files):
            file.touch()
            told = {LAUNCHED: "1", PROGRESS: str(file)}
            if number is not None:
                address = f"127.0.0.1:{port}"
                told |= {NUMBER: str(i), COUNT: str(number), ADDRESS: address}
            self.processes.append(_start(words, told))

    def steps(self) -> list[int]:
        """The number of steps of each process, or -1."""
        return [step for step, _ in self.known]

    def has_begun(self) -> bool:
        """Whether they have accepted the command, so that the run is theirs."""
        return any(phase for _, phase in self.known)

    def wait(self, timeout: float, interrupts: Sequence[int]) -> tuple[int, str]:
        """Wait for the end, and return an exit code, and why to start again, if so."""
        num_sent = 0
        try:
            while True:
                if len(interrupts) > num_sent:
                    num_sent = len(interrupts)
                    if num_sent > 1:
                        return STOPPED, ""
                    self._send(signal.SIGINT)
                codes = [process.poll() for process in self.processes]
                if all(code == 0 for code in codes):
                    return 0, ""
                if any(code not in (None, 0) for code in codes):
                    return self._ended()
                if stuck := self._stuck(timeout):
                    return LOST, stuck
                time.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            self._send(signal.SIGKILL)
            for process in self.processes:
                process.wait()
                assert process.stdin is not None
                process.stdin.close()

    def _ended(self) -> tuple[int, str]:
        """Why did one of them end? JAX aborts those that lose their peers."""
        end = time.monotonic() + SECONDS_FOR_OTHERS
        while time.monotonic() < end and any(p.poll() is None for p in self.processes):
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self._look()
        codes = {i: p.poll() for i, p in enumerate(self.processes)}
        ended = {i: code for i, code in codes.items() if code}
        killed = {i: -code for i, code in ended.items() if code < 0 and -code != signal.SIGABRT}
        meant = [code for code in ended.values() if code > 0 and code != LOST]
        if meant and not killed:
            return meant[0], ""
        who, how = next(iter(killed.items()), (next(iter(ended)), 0))
        why = f"was ended by signal {how}" if how else "has lost its peers"
        name = f"Process {who}" if self.is_alone else "The process of this host"
        return LOST, f"{name} {why}{self._at(who)}."

    def _stuck(self, timeout: float) -> str:
        """Why processes count as stuck; empty if they do not."""
        self._look()
        for i, (file, (_, phase)) in enumerate(zip(self.files, self.known, strict=True)):
            limit = timeout if phase == "step" else max(timeout, OTHER_SECONDS)
            if time.time() - file.stat().st_mtime > limit and self.processes[i].poll() is None:
                steps = ", ".join(f"{n} at step {step}" for n, step in enumerate(self.steps()))
                return f"No progress for {limit:.0f} s (processes: {steps}), so all are ended."
        return ""

    def _look(self) -> None:
        for i, file in enumerate(self.files):
            phase, _, step = file.read_text().partition(" ")
            if step:
                self.known[i] = int(step), phase

    def _at(self, i: int) -> str:
        return f" at about step {self.known[i][0]}" if self.known[i][0] >= 0 else ""

    def _send(self, number: int) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)


def _start(words: Sequence[str], told: Mapping[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "taynode.lab.cli", *words],
        # It is closed when this process ends for any reason; see `end_with_input`.
        stdin=subprocess.PIPE,
        env={**os.environ, **told},
        # Ctrl-C is handed on to them, once.
        start_new_session=True,
    )


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def end_with_input() -> None:
    """End this process when its standard input is closed, that is, when its parent has ended."""
    # Not `sys.stdin`, whose lock would block the end of the process.
    while os.read(0, 1):
        pass
    # At once, because a run can continue from its checkpoints.
    os._exit(1)


def tell_begun() -> None:
    """Tell the launcher, if any, that a run begins or continues here, as its command says."""
    tell("beginning", -1)


def tell_alive() -> None:
    """Tell the launcher, if any, that this process is not stuck."""
    if PROGRESS in os.environ:
        os.utime(os.environ[PROGRESS])


def tell(phase: str, step: int) -> None:
    """Tell the launcher, if any, how far this process is. `phase` is `step` in training."""
    if PROGRESS in os.environ:
        file = Path(os.environ[PROGRESS])
        draft = file.with_suffix(".draft")
        draft.write_text(f"{phase} {step}")
        os.replace(draft, file)
