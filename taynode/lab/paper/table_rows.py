"""The rows of a table as they are compared: seed by seed, and only where a comparison is fair."""

from collections import Counter
from collections.abc import Mapping, Set

from ..files import Json
from ..sweep.results import Result
from .arms import is_usable, num_unsolved
from .notes import note_on
from .r2_sweep import TIGHT
from .study import Numbers


# The key of a message where a measurement has no numbers.
FAILED = "failed"


def row_of(results: list[Result], columns: Mapping[str, str], further: list[str]) -> Numbers:
    """The numbers of a row.

    **Arguments:**

    - `results`: the runs of the row, one for each seed. Failed runs are counted.
    - `columns`: the names of the columns, and the names of the same numbers in a result.
    - `further`: the names of further evaluations, which not all runs may have.
    """
    done = [result for result in results if is_usable(result)]
    failed = [result for result in results if result not in done]
    notes = [note_on(result) for result in done]
    evaluations = {
        name: [found for result in done if (found := result["evaluations"].get(name)) is not None]
        for name in further
    }
    return {
        "failed": len(failed),
        "failed_seeds": [result["config"]["seed"] for result in failed],
        "seeds": [result["config"]["seed"] for result in done],
        **{column: [result["row"][name] for result in done] for column, name in columns.items()},
        "unsolved": [float(num_unsolved(result)) for result in done],
        **{f"NFE {name}": [x["test_nfe"] for x in found] for name, found in evaluations.items()},
        "messages": [result["message"] for result in failed],
        "busy": [note.busy for note in notes],
        "machines": [note.machine for note in notes],
        "remarks": [list(note.remarks) for note in notes],
    }


def row_of_measured(name: str, steps: int | None, found: dict[int, Json]) -> Numbers:
    """The row of models that were made of runs, by seed: the numbers of each, or why it failed."""
    done = {seed: values for seed, values in found.items() if FAILED not in values}
    failed = {seed: values[FAILED] for seed, values in found.items() if FAILED in values}
    return {
        "model": name,
        "steps": steps,
        "failed": len(failed),
        "failed_seeds": list(failed),
        "seeds": list(done),
        "seconds": [0.0] * len(done),
        "loss": [values["test_loss"] for values in done.values()],
        "NFE": [values["test_nfe"] for values in done.values()],
        "unsolved": [float(values["test_num_failed"]) for values in done.values()],
        "messages": list(failed.values()),
        "busy": [True] * len(done),
        "machines": [""] * len(done),
        "remarks": [[] for _ in done],
    }


def find_row(numbers: Numbers, arm: str, steps: int | None) -> Numbers:
    """The row of an arm that was trained on a number of steps, or adaptively."""
    for row in numbers["rows"]:
        if row["model"] == arm and row["steps"] == steps:
            return row
    raise KeyError(f"There is no row {arm!r} with {steps} steps.")


def column(numbers: Numbers, arm: str, steps: int | None, name: str) -> dict[int, float]:
    """The numbers of a column in a row, by seed.

    Evaluations of runs with unsolved samples are left out, and so are times of busy machines.
    """
    row = find_row(numbers, arm, steps)
    left_out = "unsolved" if name.startswith("NFE") else "busy" if name == "seconds" else ""
    spoiled = row[left_out] if left_out else [False] * len(row["seeds"])
    both = zip(row["seeds"], row[name], spoiled, strict=True)
    return {seed: value for seed, value, is_spoiled in both if not is_spoiled}


def shown(row: Numbers, name: str) -> list[float]:
    """The numbers of a column that readers are shown: all but times of busy machines."""
    if name != "seconds":
        return row[name]
    return [x for x, busy in zip(row[name], row["busy"], strict=True) if not busy]


def ratios(
    numbers: Numbers, name: str, arm: str, other: str = "unregularized", *, steps: int | None = None
) -> list[float]:
    """The numbers of a row over those of another on the same grid, for each seed of both."""
    return row_ratios(numbers, name, (arm, steps), (other, steps))


def row_ratios(
    numbers: Numbers, name: str, above: tuple[str, int | None], below: tuple[str, int | None]
) -> list[float]:
    """The numbers of a row over those of another, for each seed of both.

    Times are compared only if both were measured on the same machine.
    """
    a, b = (column(numbers, *row, name) for row in (above, below))
    seeds = [seed for seed in a if seed in b]
    if name == "seconds":
        rows = [find_row(numbers, *row) for row in (above, below)]
        on = [dict(zip(row["seeds"], row["machines"], strict=True)) for row in rows]
        seeds = [seed for seed in seeds if on[0][seed] == on[1][seed]]
    return [a[seed] / b[seed] for seed in seeds]


def count_in(numbers: Numbers) -> str:
    """The column of evaluations at the paper's tolerance, if there is one."""
    tight = f"NFE {TIGHT.name}"
    return tight if tight in numbers["rows"][0] else "NFE"


def runs_in_words(row: Numbers, shared: Set[str]) -> str:
    """The number of runs of a row and of those that failed, and the notes on them.

    The study lists all remarks. A row only points to remarks that not all rows share.
    """
    total = len(row["seeds"]) + row["failed"]
    words = [f"{row['failed']} of {total} failed" if row["failed"] else str(total)]
    if unsolved := sum(map(bool, row["unsolved"])):
        words.append(f"{unsolved} with unsolved samples")
    if busy := sum(row["busy"]):
        words.append(f"{busy} not timed on a quiet machine")
    for machine, count in Counter(filter(None, row["machines"])).items():
        words.append(f"{count} timed on {machine}")
    own = {remark for found in row["remarks"] for remark in found} - shared
    return "; ".join([*words, *(["see the remarks"] if own else [])])
