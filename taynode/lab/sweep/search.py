"""A search by Optuna, which any number of processes share and which continues after a kill.

Optuna keeps its trials in a journal. A trial belongs to a process, which holds a lock as long as it
lives. So the trials of a process that was killed are continued by the next one. Their runs have
checkpoints and results like all others.
"""

import contextlib
import dataclasses
import math
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..config import ConfigError, TrainConfig
from ..files import exclusive
from .config import Choice, Range, SearchConfig, SweepConfig
from .executor import AbstractExecutor
from .executors import optional
from .plan import Job
from .points import check_objectives, point_of
from .results import collect, has_failed, IDLE, remark, Result, RunsDone, WORK
from .table import Table


PROCESS, SPACE = "process", "space"


@dataclasses.dataclass
class _Trial:
    """A trial of this process: its number, its choice, its jobs, and the results so far."""

    number: int
    choice: Choice
    jobs: list[Job]
    results: dict[Job, Result | None]


class Search:
    """A search, with its journal in a directory.

    **Arguments:**

    - `config`: the settings of the sweep.
    - `defaults`: the settings of the task.
    - `root`: the directory of the runs, with the table of their results.
    - `directory`: the directory of the journal, `NAME.journal`.
    """

    def __init__(self, config: SweepConfig, defaults: TrainConfig, root: Path, directory: Path):
        assert config.search is not None
        self.config, self.defaults, self.root = config, defaults, root
        self.search: SearchConfig = config.search
        self.optuna: Any = optional("optuna", "search", "`search`")
        self.optuna.logging.set_verbosity(self.optuna.logging.WARNING)
        directory.mkdir(parents=True, exist_ok=True)
        self.journal = directory / f"{config.name}.journal"
        self.lock = directory / f".{config.name}.lock"
        self.process = secrets.token_hex(8)
        with exclusive(self.lock):
            self.study = self._open()
        self.table = Table(root)
        self.open: dict[int, _Trial] = {}
        self.problem = ""
        # The errors of runs that this process could not do.
        self.errors: list[str] = []

    def run(
        self,
        executor: AbstractExecutor,
        *,
        on_progress: Callable[[RunsDone], None] | None = None,
    ) -> None:
        """Do trials until there are enough, together with other processes."""
        notify = on_progress or (lambda runs: None)
        known, total = self._num_done(), self.search.trials * len(self.config.seeds)
        num_failed = 0
        notify(RunsDone(known, max(known, total), known))
        with self._alive():
            results = self.table.results()
            for done in executor.execute(self._jobs(results), self.root / WORK):
                result = collect(done.job, self.root, self.table)
                if result is None:
                    self.errors.append(done.error)
                else:
                    results[done.job] = result
                    # Rather than when all seeds of a trial have ended.
                    check_objectives(self.config, result)
                self._end(done.job, result)
                num_failed += has_failed(result)
                count, message = self._num_done(), done.error or remark(result)
                usage = executor.usage() if count < total else IDLE
                if count + usage.num_running < total:
                    # The executor starts one more before anything else happens.
                    usage = dataclasses.replace(usage, num_running=usage.num_running + 1)
                notify(RunsDone(count, max(count, total), known, message, num_failed, usage))

        if self.problem and not any(trial.values for trial in self._trials()):
            raise ConfigError(f"`search`: no trial has values that fit each other: {self.problem}")

    def choices(self) -> list[Choice]:
        """The choices of all trials that have ended."""
        return [dict(trial.params) for trial in self._trials() if trial.state.is_finished()]

    def num_open(self) -> int:
        """The number of trials that have not ended."""
        return sum(not trial.state.is_finished() for trial in self._trials())

    def num_elsewhere(self) -> int:
        """The number of trials that other processes have not ended."""
        return self.num_open() - len(self.open)

    def _open(self) -> Any:
        storage = self.optuna.storages.JournalStorage(
            self.optuna.storages.journal.JournalFileBackend(
                str(self.journal), lock_obj=_JournalLock(self.journal)
            )
        )
        study = self.optuna.create_study(
            storage=storage,
            study_name=self.config.name,
            directions=["minimize", "minimize"],
            load_if_exists=True,
        )
        space = repr([self.search.space, self.config.settings, self.config.task, self.config.scale])
        space += repr([self.config.seeds, self.config.objectives])
        if SPACE not in study.user_attrs:
            study.set_user_attr(SPACE, space)
        elif study.user_attrs[SPACE] != space:
            raise ConfigError(
                f"`{self.config.name}` was begun with other settings than those it has now: give "
                f"the file another name, or delete {self.journal} to begin anew."
            )
        return study

    def _trials(self) -> list[Any]:
        return self.study.get_trials(deepcopy=False)

    def _num_done(self) -> int:
        """The number of runs that have ended, in units of trials of other processes."""
        ended = sum(trial.state.is_finished() for trial in self._trials())
        partly = sum(len(trial.results) for trial in self.open.values())
        return ended * len(self.config.seeds) + partly

    def _jobs(self, results: dict[Job, Result]) -> Iterator[Job]:
        """The jobs of one trial after the other. Results that are known are used."""
        started: set[Job] = set()
        while (trial := self._next()) is not None:
            for job in trial.jobs:
                if job in results:
                    self._end(job, results[job])
                elif job not in started:
                    started.add(job)
                    yield job

    def _next(self) -> _Trial | None:
        """A trial that a killed process has left, or a new one; none if there are enough."""
        while True:
            with exclusive(self.lock):
                trial = self._take()
                if trial is None:
                    return None
                trial.set_user_attr(PROCESS, self.process)
                choice = {name: _suggest(trial, name, x) for name, x in self.search.space.items()}
            try:
                jobs = self.config.jobs(choice, self.defaults)
            except ConfigError as error:
                # Values that exclude each other. The search learns to avoid them.
                self.problem = str(error)
                self._tell(trial.number, None)
                continue
            self.open[trial.number] = _Trial(trial.number, choice, jobs, {})
            return self.open[trial.number]

    def _take(self) -> Any:
        trials = self._trials()
        for trial in trials:
            if not trial.state.is_finished() and self._is_orphan(trial):
                return self.optuna.trial.Trial(self.study, trial._trial_id)
        if len(trials) >= self.search.trials:
            return None
        # A process that continues must not draw the same numbers as the one before.
        seed = self.search.seed + len(trials)
        self.study.sampler = self.optuna.samplers.TPESampler(seed=seed)
        return self.study.ask()

    def _end(self, job: Job, result: Result | None) -> None:
        for trial in [trial for trial in self.open.values() if job in trial.jobs]:
            trial.results[job] = result
            if len(trial.results) < len(trial.jobs):
                continue
            # A run that could not be done is tried again by the next process.
            if all(each is not None for each in trial.results.values()):
                point = point_of(self.config, trial.choice, list(trial.results.values()))
                values = [point.values.get(name, math.nan) for name in self.config.objectives]
                usable = not point.num_failed and all(map(math.isfinite, values))
                self._tell(trial.number, values if usable else None)
                del self.open[trial.number]

    def _tell(self, number: int, values: list[float] | None) -> None:
        state = self.optuna.trial.TrialState
        if values is None:
            self.study.tell(number, state=state.FAIL, skip_if_finished=True)
        else:
            self.study.tell(number, values, skip_if_finished=True)

    def _is_orphan(self, trial: Any) -> bool:
        """Whether the process of a trial has ended."""
        process = trial.user_attrs.get(PROCESS)
        if process == self.process:
            return False
        file = self._file_of(process)
        if process is None or not file.exists():
            return True
        try:
            with exclusive(file, wait=False):
                file.unlink(missing_ok=True)
                return True
        except BlockingIOError:
            return False

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        """Hold the lock by which other processes see that this one lives."""
        file = self._file_of(self.process)
        try:
            with exclusive(file):
                yield
        finally:
            file.unlink(missing_ok=True)

    def _file_of(self, process: str | None) -> Path:
        return self.journal.with_name(f".{self.config.name}.{process}")


class _JournalLock:
    """The lock of a journal. A dead process holds no lock, and an incomplete last line is cut."""

    def __init__(self, journal: Path):
        self.journal = journal
        self.held = contextlib.ExitStack()

    def acquire(self) -> bool:
        self.held.enter_context(exclusive(self.journal.with_name(f"{self.journal.name}.lock")))
        with open(self.journal, "rb+") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 1))
            if size and stream.read() != b"\n":
                stream.seek(0)
                stream.truncate(stream.read().rfind(b"\n") + 1)
                os.fsync(stream.fileno())
        return True

    def release(self) -> None:
        self.held.close()


def _suggest(trial: Any, name: str, space: tuple | Range) -> Any:
    if not isinstance(space, Range):
        return trial.suggest_categorical(name, space)
    kind = trial.suggest_int if isinstance(space.low, int) else trial.suggest_float
    return kind(name, space.low, space.high, log=space.log)
