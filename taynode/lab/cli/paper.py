"""`taynode paper`."""

import dataclasses
import json
import sys
import traceback
from pathlib import Path

from cyclopts import Parameter

from ...registry import one_of
from ..config import ConfigError, positive, SCALES
from ..files import Json
from .execution import check_figures, Execution, ON_THIS_MACHINE, ProgressPrinter
from .tables import JsonOutput, print_rows


def list_(*, json_output: JsonOutput = False) -> None:
    """List the studies, and groups of them that have a name."""
    from ..paper.study import find_study, GROUPS, STUDIES

    rows = [{"name": name, "title": find_study(name).title} for name in STUDIES]
    rows += [{"name": name, "title": f"all of {', '.join(GROUPS[name])}"} for name in GROUPS]
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
    resume
        Use earlier results; otherwise delete them and start again.
    out
        Directory of the results, with a folder for each scale.

    """

    scale: str = "laptop"
    seeds: int | None = None
    resume: bool = True
    out: Path = Path("results")
    json_output: JsonOutput = False


DEFAULTS = Options()


def run(*names: str, options: Options = DEFAULTS, execution: Execution = ON_THIS_MACHINE) -> None:
    """Run some studies. Runs that have results are not repeated.

    Parameters
    ----------
    names
        Names of the studies, or of groups such as budgets and rivals.

    """
    if not names:
        raise ConfigError("`names`: name at least one study; `taynode paper list` lists them.")
    _raise(_run(list(names), options, execution))


def all_(*, options: Options = DEFAULTS, execution: Execution = ON_THIS_MACHINE) -> None:
    """Run all studies, and write the page about them. Runs that have results are not repeated."""
    from ..paper.companion import write_companion
    from ..paper.study import STUDIES

    problems = _run(list(STUDIES), options, execution)
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


def _run(names: list[str], options: Options, execution: Execution) -> list[str]:
    """Run studies, and return a message for each that failed."""
    from ..paper.run import run_studies
    from ..paper.study import find_study, names_of, seeds_of, StudyFailed
    from ..paper.summary import write_summary
    from ..paper.worker import WORKER
    from ..sweep.results import forget

    one_of("scale", options.scale, SCALES)
    if options.seeds is not None:
        positive("seeds", options.seeds)
    executor = execution.executor_for(worker=WORKER)
    studies = [find_study(name) for name in names_of(names)]
    check_figures()
    root = options.out / options.scale
    seeds = {study: seeds_of(study, options.scale, options.seeds) for study in studies}
    if not options.resume:
        say = lambda message: print(message, file=sys.stderr)
        for study in studies:
            forget(study.jobs(options.scale, seeds[study]), root / "runs", say=say)
    claims: dict[str, list[Json]] = {}
    problems = []
    title = studies[0].name if len(studies) == 1 else f"{len(studies)} studies"
    watch = None if options.json_output else ProgressPrinter(title)
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
