"""`taynode paper`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..training.config import one_of, positive, SCALES
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


def run(
    *names: str,
    scale: str = "laptop",
    seeds: int = 3,
    jobs: int | None = None,
    out: Path = Path("results"),
    json_output: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Do some studies, or go on with them: what has been done is not done again.

    Parameters
    ----------
    names
        Of the studies; all is all of them.
    scale
        smoke, laptop or paper.
    seeds
        How many, from 0 on.
    jobs
        How many runs at once; as many as there are cores by default.
    out
        Where results go, in a folder for each scale.
    json_output
        Print the claims as JSON, and nothing else.

    """
    from ..paper import find_study, STUDIES
    from ..paper.run import run_study
    from ..sweep.executor import LocalExecutor

    one_of("scale", scale, SCALES)
    positive("seeds", seeds)
    chosen = list(STUDIES) if names in (("all",), ()) else list(names)
    studies = [find_study(name) for name in chosen]
    told: dict[str, list[dict[str, Any]]] = {}
    for study in studies:
        claims = run_study(
            study,
            out / scale,
            scale=scale,
            seeds=range(seeds),
            executor=LocalExecutor(jobs),
            watch=None if json_output else _Watch(study.name),
        )
        told[study.name] = [vars(claim) for claim in claims]
        if not json_output:
            print_rows(told[study.name], f"{study.name}: {study.title}")
            print(f"Figure: {out / scale / study.name}.png")
    if json_output:
        print(json.dumps(told))


class _Watch:
    """Tells about runs as they end."""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, count: int, total: int, error: str) -> None:
        words = f"{self.name}: {count} of {total} runs"
        print(f"{words} (failed: {error})" if error else words, file=sys.stderr)
