"""`taynode paper`."""

import dataclasses
import importlib.util
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from cyclopts import Parameter

from ...registry import one_of
from ..config import ConfigError, positive, SCALES
from ..files import Json
from ..paper.run import RunsDone
from .tables import JsonOutput, print_rows


def list_(*, json_output: JsonOutput = False) -> None:
    """List the studies."""
    from ..paper.study import find_study, STUDIES

    rows = [{"name": name, "title": find_study(name).title} for name in STUDIES]
    print_rows(rows, as_json=json_output)


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class Options:
    """Options of the commands that run studies.

    Parameters
    ----------
    scale
        Size of the experiments: smoke, laptop or paper.
    seeds
        Number of seeds, from 0 on; by default that of each study, 3 or 5, and 1 at smoke.
    jobs
        Number of runs at the same time; the number of cores by default.
    resume
        Use earlier results; otherwise delete them and start again.
    out
        Directory of the results, with a folder for each scale.

    """

    scale: str = "laptop"
    seeds: int | None = None
    jobs: int | None = None
    resume: bool = True
    out: Path = Path("results")
    json_output: JsonOutput = False


DEFAULTS = Options()


def run(*names: str, options: Options = DEFAULTS) -> None:
    """Run some studies. Runs that have results are not repeated.

    Parameters
    ----------
    names
        Names of the studies.

    """
    if not names:
        raise ConfigError("`names`: name at least one study; `taynode paper list` lists them.")
    _raise(_run(list(names), options))


def all_(*, options: Options = DEFAULTS) -> None:
    """Run all studies, and write the page about them. Runs that have results are not repeated."""
    from ..paper.companion import write_companion
    from ..paper.study import STUDIES

    problems = _run(list(STUDIES), options)
    root = options.out / options.scale
    if any((root / f"{name}.json").exists() for name in STUDIES):
        page = write_companion(root, root / "index.html")
        if not options.json_output:
            print(f"Page: {page}")
    _raise(problems)


def _raise(problems: list[str]) -> None:
    from ..paper.study import StudyFailed

    if problems:
        raise StudyFailed("Not all studies could be run: " + "; ".join(problems))


def _run(names: list[str], options: Options) -> list[str]:
    """Run studies, and return a message for each that failed."""
    from ..paper.run import run_studies
    from ..paper.study import find_study, seeds_of, StudyFailed
    from ..paper.summary import write_summary
    from ..paper.worker import WORKER
    from ..sweep.executor import LocalExecutor
    from ..sweep.results import forget

    one_of("scale", options.scale, SCALES)
    if options.seeds is not None:
        positive("seeds", options.seeds)
    executor = LocalExecutor(options.jobs, worker=WORKER)
    studies = [find_study(name) for name in dict.fromkeys(names)]
    # Before hours of training for a figure that cannot be drawn.
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("Figures need matplotlib: pip install 'taynode[all]'.")
    root = options.out / options.scale
    seeds = {study: seeds_of(study, options.scale, options.seeds) for study in studies}
    if not options.resume:
        for study in studies:
            forget(study.jobs(options.scale, seeds[study]), root / "runs")
    claims: dict[str, list[Json]] = {}
    problems = []
    title = studies[0].name if len(studies) == 1 else f"{len(studies)} studies"
    watch = None if options.json_output else ProgressPrinter(title, at_once=executor.num_processes)
    for ended in run_studies(
        seeds, root, scale=options.scale, executor=executor, on_progress=watch
    ):
        name = ended.study.name
        if ended.error is not None:
            if not isinstance(ended.error, StudyFailed | ConfigError):
                traceback.print_exception(ended.error)
            problems.append(f"{name}: {ended.error}")
            continue
        claims[name] = [vars(claim) for claim in ended.claims]
        if not options.json_output:
            shown = [{k: v for k, v in x.items() if k != "is_ours"} for x in claims[name]]
            print_rows(shown, f"{name}: {ended.study.title}")
            print(f"Figure: {root / name}.png")
    if options.json_output:
        print(json.dumps(claims))
    if claims:
        write_summary(root)
    return problems


class ProgressPrinter:
    """Prints a line when a run has ended, with an estimate of the time left.

    - `name`: the name of the study, or the number of studies.
    - `at_once`: the number of runs at the same time.
    - `clock`: returns the time in seconds.
    """

    def __init__(self, name: str, at_once: int, clock: Callable[[], float] = time.monotonic):
        self.name, self.at_once, self.clock, self.start = name, at_once, clock, clock()

    def __call__(self, progress: RunsDone) -> None:
        """Print a line."""
        print(self.words(progress), file=sys.stderr)

    def words(self, progress: RunsDone) -> str:
        """The line: the number of runs that are done, the time left, and the last problem."""
        done, left = progress.count - progress.known, progress.total - progress.count
        words = f"{self.name}: {progress.count} of {progress.total} runs"
        if not done:
            return f"{words} have been done before" if progress.count else words
        if left:
            # The first runs to end stand for those that run beside them.
            each = (self.clock() - self.start) / max(done, min(self.at_once, done + left))
            words += f", {_duration(each * left)} left"
        return f"{words} ({progress.message})" if progress.message else words


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
