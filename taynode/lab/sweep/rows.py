"""What is kept of a run: one row, which outlives changes of the settings.

A row holds the whole settings of its job, those that were left at their defaults, too. It belongs
to a job only if all settings agree. So a default that changes later neither orphans a row of a job
that names the setting, nor passes a row off as the result of a job that it does not belong to.

When settings get new names or meanings, old rows are upgraded as they are read: raise `VERSION`,
and add to `UPGRADES` a function that turns a row of the version before into one of today's. A
setting that a row lacks gets its default, unless an upgrade has set it before.
"""

import copy
from collections.abc import Callable
from typing import Any

from ..config import ConfigError
from .plan import Job, job_from_dict


Row = dict[str, Any]

VERSION = 2
OLD_MAX_STEPS = 512


def _from_1(row: Row) -> Row:
    """Settings whose names or defaults have changed since version 1 and that made no difference.

    - "dopri5" in training was made as `unrolled_dopri5`, unless the adjoint was backsolve.
    - The limit of steps was 512. No solve of a kept run has met it.
    - A time per row is the default. Only the quadrature sampled of a joint batch has any.
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


def _has_failures(row: Row) -> bool:
    numbers = (row["row"], *row["evaluations"].values())
    failed = (value for each in numbers for name, value in each.items() if name.endswith("failed"))
    return row["state"] != "finished" or any(failed)


UPGRADES: dict[int, Callable[[Row], Row]] = {1: _from_1}
# What every row has, besides `redone`, which says why a run was begun anew, `parameters`, and
# `note`, see `taynode.lab.paper.notes`.
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
    """Something that is not a row, or one of a later version. The message says why."""


def result_of_row(row: Any) -> tuple[Job, dict[str, Any]]:
    """The job of a row, and its result: the row, with `config` for the settings of the run."""
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
    return job, {**row, "identity": job.identity, "job": settings, "config": settings["config"]}


def row_of_result(result: dict[str, Any]) -> Row:
    """A result without what it has twice."""
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
