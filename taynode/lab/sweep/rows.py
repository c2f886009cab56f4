"""What is kept of a run: one row, which outlives changes of the settings.

A row holds the whole settings of its job, those that were left at their defaults, too. It belongs
to a job only if all settings agree. So a default that changes later neither orphans a row of a job
that names the setting, nor passes a row off as the result of a job that it does not belong to.

When settings get new names or meanings, old rows are upgraded as they are read. Raise `VERSION`,
and add to `UPGRADES` a function that turns a row of the version before into one of today's:

    def _from_1(row):
        '''The default of `points` is 2, and unregularized runs have never used it.'''
        regularizer = row["job"]["config"]["regularizer"]
        if regularizer["name"] == "none":
            regularizer["points"] = 2
        return row

    UPGRADES = {1: _from_1}

A setting that a row lacks gets its default, unless an upgrade has set it before.
"""

import copy
from collections.abc import Callable
from typing import Any

from ..config import ConfigError
from .plan import Job, job_from_dict


Row = dict[str, Any]

VERSION = 1
UPGRADES: dict[int, Callable[[Row], Row]] = {}
# What every row has, besides `redone`, which says why a run was begun anew, and `parameters`.
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
