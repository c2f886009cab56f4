"""`taynode paper`."""

import dataclasses
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..training.config import ConfigError, one_of, positive, SCALES
from .tables import print_rows


def list_(*, json_output: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """What studies there are.

    Parameters
    ----------
    json_output
        Print JSON, and nothing else.

    """
    from ..paper import find_study, STUDIES

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
    from ..paper import STUDIES
    from ..paper.companion import write_companion

    problems = _run(list(STUDIES), options)
    root = options.out / options.scale
    page = write_companion(root, root / "index.html")
    if not options.json_output:
        print(f"Page: {page}")
    _raise(problems)


def _raise(problems: list[str]) -> None:
    if problems:
        raise ConfigError("Not all studies could be done: " + "; ".join(problems))


def _run(names: list[str], options: Options) -> list[str]:
    """Do studies; what went wrong."""
    from ..paper import find_study, seeds_of
    from ..paper.run import run_study
    from ..paper.summary import write_summary
    from ..sweep.executor import LocalExecutor

    one_of("scale", options.scale, SCALES)
    if options.seeds is not None:
        positive("seeds", options.seeds)
    studies = [find_study(name) for name in names]
    root = options.out / options.scale
    if not options.resume:
        for study in studies:
            for job in study.jobs(options.scale, seeds_of(study, options.scale, options.seeds)):
                shutil.rmtree(job.directory(root / "runs"), ignore_errors=True)
    told: dict[str, list[dict[str, Any]]] = {}
    problems = []
    for study in studies:
        try:
            claims = run_study(
                study,
                root,
                scale=options.scale,
                seeds=seeds_of(study, options.scale, options.seeds),
                executor=LocalExecutor(options.jobs),
                watch=None if options.json_output else _Watch(study.name),
            )
        except ConfigError as error:
            # The other studies go on.
            problems.append(f"{study.name}: {error}")
            continue
        told[study.name] = [vars(claim) for claim in claims]
        if not options.json_output:
            shown = [{k: v for k, v in x.items() if k != "is_ours"} for x in told[study.name]]
            print_rows(shown, f"{study.name}: {study.title}")
            print(f"Figure: {root / study.name}.png")
    if told:
        write_summary(root)
    if options.json_output:
        print(json.dumps(told))
    return problems


AT_ONCE = 0.2


class _Watch:
    """Tells about runs as they end, and when the rest of them will have."""

    def __init__(self, name: str):
        self.name, self.start, self.last, self.known = name, 0.0, 0.0, 0

    def __call__(self, count: int, total: int, error: str) -> None:
        now = time.monotonic()
        # Results that were there already come at once, and say nothing about the others.
        if count == self.known + 1 and (count == 1 or now - self.last < AT_ONCE):
            self.known, self.start = count, now
        self.last = now
        elapsed, done = now - self.start, count - self.known
        words = f"{self.name}: {count} of {total} runs"
        if done and count < total:
            words += f", {_duration(elapsed / done * (total - count))} left"
        print(f"{words} (failed: {error})" if error else words, file=sys.stderr)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
