"""The kept result of a run as one row, which stays valid when settings change.

A row holds all settings of its job, also those at their defaults. It belongs to a job only if all
settings agree. So when a default changes later, no row is taken for the result of another job.

When the names or meanings of settings change, old rows are upgraded as they are read: raise
`VERSION`, and add to `UPGRADES` a function that converts a row of the version before. A setting
that a row lacks gets its default, unless an upgrade has set it.
"""

import copy
from collections.abc import Callable
from typing import TypeAlias

from ..config import ConfigError
from ..files import Json
from .plan import identity_of_read, Job, job_from_dict


Row: TypeAlias = Json

VERSION = 3
OLD_MAX_STEPS = 512


def _from_1(row: Row) -> Row:
    """Update settings whose names or defaults have changed since version 1 without any effect.

    - "dopri5" in training meant `unrolled_dopri5`, unless the adjoint was backsolve.
    - The limit of steps was 512. No solve of a kept run has reached it.
    - A random time per row is now the default. Only the quadrature sampled with a joint batch has
        random times.
    """
    config = row["job"]["config"]
    training, regularizer = config["training"], config["regularizer"]
    if training["solver"] == "dopri5" and training["adjoint"] != "backsolve":
        training["solver"] = "unrolled_dopri5"
    evaluations = [evaluation["solve"] for evaluation in row["job"]["evaluations"]]
    for solve in (training, config["evaluation"], *evaluations):
        if solve["max_steps"] == OLD_MAX_STEPS and not _has_failures(row):
            solve["max_steps"] = 4096
    drawn = regularizer["name"] != "none" and regularizer["quadrature"] == "sampled"
    if not (drawn and config["joint"]):
        regularizer["per_row"] = True
    return row


def _from_2(row: Row) -> Row:
    """Rename the solver and the adjoint, which are now others with the same steps and gradients."""
    config = row["job"]["config"]
    evaluations = [evaluation["solve"] for evaluation in row["job"]["evaluations"]]
    for solve in (config["training"], config["evaluation"], *evaluations):
        if solve["solver"] == "unrolled_dopri5":
            solve["solver"] = "dopri5"
        if solve["adjoint"] == "checkpoint":
            solve["adjoint"] = "accepted_steps"
    return row


def _has_failures(row: Row) -> bool:
    numbers = (row["row"], *row["evaluations"].values())
    failed = (value for each in numbers for name, value in each.items() if name.endswith("failed"))
    return row["state"] != "finished" or any(failed)


UPGRADES: dict[int, Callable[[Row], Row]] = {1: _from_1, 2: _from_2}
# The keys of every row. Some rows also have `redone`, the reason why a run was started again,
# `parameters`, and `note`, see `taynode.lab.paper.notes`.
PARTS = {
    "version",
    "identity",
    "job",
    "state",
    "message",
    "data",
    "environment",
    "row",
    "history",
    "evaluations",
    "measured",
}


class NotARow(ValueError):
    """A value is not a row, or a row of a later version. The message says why."""


def result_of_row(row: object) -> tuple[Job, Json]:
    """The job of a row, and its result: the row and the settings of the run as `config`."""
    if not isinstance(row, dict):
        raise NotARow("it is not a table")
    row = _upgraded(row)
    if missing := PARTS - row.keys():
        raise NotARow(f"it lacks {', '.join(sorted(missing))}")
    try:
        job = job_from_dict(row["job"])
    except (ConfigError, KeyError, TypeError, AttributeError) as error:
        raise NotARow(str(error)) from None
    settings = job.as_dict()
    identity = identity_of_read(job)
    return job, {**row, "identity": identity, "job": settings, "config": settings["config"]}


def row_of_result(result: Json) -> Row:
    """The row of a result, which holds the settings of the run only once."""
    return {name: value for name, value in result.items() if name != "config"}


def _upgraded(row: Row) -> Row:
    version = row.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise NotARow(f"its version is {version!r}, and the latest one known is {VERSION}")
    if version < VERSION:
        row = copy.deepcopy(row)
    for number in range(version, VERSION):
        if number not in UPGRADES:
            raise NotARow(f"there is no way from version {number} to {number + 1}")
        row = UPGRADES[number](row)
    return {**row, "version": VERSION}
