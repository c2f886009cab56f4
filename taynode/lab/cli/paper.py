"""`taynode paper`."""

import dataclasses
import importlib.util
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...registry import one_of
from ..config import ConfigError, positive, SCALES
from ..paper.run import RunsDone
from .tables import print_rows


def list_(*, json_output: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """What studies there are.

    Parameters
    ----------
    json_output
        Print JSON, and nothing else.

    """
    from ..paper.study import find_study, STUDIES

    rows = [{"name": name, "title": find_study(name).title} for name in STUDIES]
    if json_output:
        print(json.dumps(rows))
    else:
        print_rows(rows)


@Parameter(name="*")
@dataclasses.dataclass(frozen=True)
class Options:
    """How studies are done.

    Parameters
    ----------
    scale
        smoke, laptop or paper.
    seeds
        How many, from 0 on; by default as many as a study should have, 3 or 5, and 1 at smoke.
    jobs
        How many runs at once; as many as there are cores by default.
    resume
        Use what has been done before; otherwise begin anew.
    out
        Where results go, in a folder for each scale.
    json_output
        Print the claims as JSON, and nothing else.

    """

    scale: str = "laptop"
    seeds: int | None = None
    jobs: int | None = None
    resume: bool = True
    out: Path = Path("results")
    json_output: Annotated[bool, Parameter(name="--json")] = False


DEFAULTS = Options()


def run(*names: str, options: Options = DEFAULTS) -> None:
    """Do some studies, or go on with them: what has been done is not done again.

    Parameters
    ----------
    names
        Of the studies.
    options
        How they are done.

    """
    if not names:
        raise ConfigError("`names`: name at least one study; `taynode paper list` lists them.")
    _raise(_run(list(names), options))


def all_(*, options: Options = DEFAULTS) -> None:
    """Do all studies, or go on with them, and write the page about them."""
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
        raise StudyFailed("Not all studies could be done: " + "; ".join(problems))


def _run(names: list[str], options: Options) -> list[str]:
    """Do studies; what went wrong."""
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
    # Before hours are spent on what then cannot be drawn.
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("Figures need matplotlib: pip install 'taynode[all]'.")
    root = options.out / options.scale
    seeds = {study: seeds_of(study, options.scale, options.seeds) for study in studies}
    if not options.resume:
        for study in studies:
            forget(study.jobs(options.scale, seeds[study]), root / "runs")
    told: dict[str, list[dict[str, Any]]] = {}
    problems = []
    title = studies[0].name if len(studies) == 1 else f"{len(studies)} studies"
    watch = None if options.json_output else Watch(title, at_once=executor.num_processes)
    for ended in run_studies(
        seeds, root, scale=options.scale, executor=executor, on_progress=watch
    ):
        name = ended.study.name
        if ended.error is not None:
            if not isinstance(ended.error, StudyFailed | ConfigError):
                traceback.print_exception(ended.error)
            problems.append(f"{name}: {ended.error}")
            continue
        told[name] = [vars(claim) for claim in ended.claims]
        if not options.json_output:
            shown = [{k: v for k, v in x.items() if k != "is_ours"} for x in told[name]]
            print_rows(shown, f"{name}: {ended.study.title}")
            print(f"Figure: {root / name}.png")
    if options.json_output:
        print(json.dumps(told))
    if told:
        write_summary(root)
    return problems


class Watch:
    """Tells about runs as they end, and when the rest of them will have.

    - `name`: of the study, or how many they are.
    - `at_once`: how many runs go on at the same time.
    - `clock`: tells the time in seconds.
    """

    def __init__(self, name: str, at_once: int, clock: Callable[[], float] = time.monotonic):
        self.name, self.at_once, self.clock, self.start = name, at_once, clock, clock()

    def __call__(self, progress: RunsDone) -> None:
        """Print a line."""
        print(self.words(progress), file=sys.stderr)

    def words(self, progress: RunsDone) -> str:
        """How many runs are done, how long the others will take, and what was wrong."""
        done, left = progress.count - progress.known, progress.total - progress.count
        words = f"{self.name}: {progress.count} of {progress.total} runs"
        if not done:
            return f"{words} have been done before" if progress.count else words
        if left:
            # At first, those that have not ended are about as far as those that have.
            each = (self.clock() - self.start) / max(done, min(self.at_once, done + left))
            words += f", {_duration(each * left)} left"
        return f"{words} ({progress.message})" if progress.message else words


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
