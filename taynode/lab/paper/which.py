"""The numbers of the page "Which regularizer?", from the results of the studies `rivals-*`.

`python -m taynode.lab.paper.which results/laptop docs/which-regularizer.md` writes them between two
marks in the page. All sentences follow from the numbers.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..files import replace_text
from .budgets import SHARES
from .companion import read_study
from .effort import in_words
from .rival_claims import Compared, FOOLED, fooled_claims, GIVEN, looks_fooled
from .statistics import CONFIDENCE, mean, mean_interval, spread
from .study import find_study, GROUPS
from .summary import markdown
from .verdicts import FAILS, HOLDS, UNDECIDED


BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
# `python -m benchmarks.rivals` writes it.
STEPS = "rivals-steps.json"
# Whether a solver is fooled, by the verdict on the claim that it is not.
WORDS = {HOLDS: "no", FAILS: "yes", UNDECIDED: "undecided"}
NOTHING = (
    "**No study has been done yet**, so this page says nothing of what is best. "
    "`taynode paper run rivals` does all five; `python -m benchmarks.rivals` measures the steps."
)


class Best(NamedTuple):
    """The methods with the least loss at a share of the evaluations.

    - `first`: the method with the least mean loss.
    - `others`: those whose paired interval over seeds does not exclude that they are as good.
    - `reached`: all methods that reach it, on all seeds.
    """

    first: str
    others: Sequence[str]
    reached: Sequence[str]


class Task(NamedTuple):
    """A study that has been done."""

    title: str
    found: Compared
    fooled: Mapping[str, str]
    effort: str
    steps: Mapping[str, Any]

    def best(self, share: float) -> Best | None:
        """The best methods at a share of the evaluations; `None` if none reaches it.

        Methods that seem to fool the solver do not count. Their evaluations are no price.
        """
        seeds = self.found.column(GIVEN, "loss").keys()
        losses = {name: self.found.losses_at(name, share) for name in self.found.rows}
        known = {
            name: x
            for name, x in losses.items()
            if x.keys() == seeds and not looks_fooled(self.found, name)
        }
        if not known:
            return None
        first = min(known, key=lambda name: mean(known[name].values()))
        others = []
        for name, each in known.items():
            more = mean_interval(each[seed] - known[first][seed] for seed in seeds)
            if name != first and (more is None or more[0] <= 0):
                others.append(name)
        return Best(first, others, list(known))

    def step(self, method: str) -> float:
        """The time of a step over that without regularizer, at the final parameters if possible."""
        at = self.steps.get("final") or self.steps.get("initial") or {}
        return at.get(method, {}).get("ratio", math.nan)


def write_page(root: Path, page: Path) -> Path:
    """Write what the studies in a directory say into a page, and return its path."""
    text = page.read_text()
    if not (BEGIN in text and END in text):
        raise ValueError(f"{page} has no marks {BEGIN} and {END}.")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    replace_text(page, f"{before}{BEGIN}\n\n{contents(read_tasks(root))}\n\n{END}{after}")
    return page


def read_tasks(root: Path) -> list[Task]:
    """The studies in a directory that have numbers."""
    steps = json.loads((root / STEPS).read_text()) if (root / STEPS).exists() else {}
    tasks = []
    for name in GROUPS["rivals"]:
        record = read_study(root / f"{name}.json")
        if record is None or record["numbers"] is None:
            continue
        study: Any = find_study(name)
        found = study.compared(record["numbers"])
        claims = zip(found.rows, fooled_claims(found), strict=True)
        fooled = {method: WORDS[claim.verdict] for method, claim in claims}
        title, effort = study.basis.title, in_words(record.get("effort"))
        tasks.append(Task(title, found, fooled, effort, steps.get(study.basis.name, {})))
    return tasks


def contents(tasks: Sequence[Task]) -> str:
    """What to take, and a table for each task."""
    if not tasks:
        return NOTHING
    left = len(GROUPS["rivals"]) - len(tasks)
    parts = [
        f"**{left} of the five studies are not done yet.**" if left else "",
        "## What to take",
        *_verdicts(tasks),
        *(_section(task) for task in tasks),
    ]
    return "\n\n".join(filter(None, parts))


def _verdicts(tasks: Sequence[Task]) -> list[str]:
    """How often each method is among the best, as a table, and a sentence on the first."""
    cases = [best for task in tasks for share in SHARES if (best := task.best(share))]
    methods = list(dict.fromkeys(name for task in tasks for name in task.found.rows))
    rows = []
    for name in methods:
        among = sum(name == best.first or name in best.others for best in cases)
        reached = sum(name in best.reached for best in cases)
        ratios = [task.step(name) for task in tasks if math.isfinite(task.step(name))]
        fooled = sum(task.fooled.get(name) == WORDS[FAILS] for task in tasks)
        tried = sum(name in task.found.rows for task in tasks)
        # The order: often among the best, and cheap.
        rows.append((-among, mean(ratios), name, reached, f"{fooled} of {tried}"))
    rows.sort(key=lambda row: (row[0], row[1] if math.isfinite(row[1]) else math.inf))
    _, ratio, first, *_ = rows[0]
    told = f", and a step takes {ratio:.2f} times as long" if math.isfinite(ratio) else ""
    rejected = [
        x
        for task in tasks
        for row in task.found.numbers["rows"]
        for x in row["rejected"]
        if math.isfinite(x)
    ]
    sentences = [
        f"Most often among the best: **{first}**, in {-rows[0][0]} of {len(cases)} cases, a task "
        f"and a share of the evaluations each{told}. A method is among the best if the paired "
        f"{CONFIDENCE:.0%} interval over seeds does not exclude that its loss is as low as that of "
        "the method with the lowest mean. The lowest of many means is low by luck, too: only fresh "
        "seeds decide.",
    ]
    if rejected:
        sentences.append(
            f"At most {100 * max(rejected):.2g} % of the steps of a model are rejected. So a "
            "charge on rejected steps could save no more."
        )
    names = "method", "among the best", "reaches it", "step", "solver fooled"
    table = [
        [name, f"{-among} of {len(cases)}", f"{reached}", _number(ratio), fooled]
        for among, ratio, name, reached, fooled in rows
    ]
    return ["\n\n".join(sentences), markdown(names, table)]


def _section(task: Task) -> str:
    found = task.found
    given = found.column(GIVEN, "loss")
    rows = []
    for name in found.rows:
        end = found.end(name)
        cells = [name]
        for share in SHARES:
            cells.append(_interval(found.paid(name, share)))
        for column in ("NFE", "training NFE", "least NFE"):
            cells.append(_spread(found.ratios(column, end)))
        cells += [_spread([x for x in found.column(end, "true error").values()])]
        cells += [task.fooled[name], _number(task.step(name))]
        rows.append(cells)
    names = [
        "method",
        *(f"loss at {share:g}" for share in SHARES),
        "evaluations",
        "in training",
        "least",
        "true error",
        f"fooled ({FOOLED:g} times)",
        "step",
    ]
    about = (
        f"Unregularized: loss {_spread(list(given.values()))}, evaluations "
        f"{_spread(list(found.column(GIVEN, 'NFE').values()))}, true error "
        f"{_spread(list(found.column(GIVEN, 'true error').values()))} tolerances. {task.effort}."
    )
    return "\n\n".join([f"## {task.title}", about, markdown(names, rows)])


def _interval(values: Sequence[float]) -> str:
    """The mean and the interval."""
    if not values:
        return "not reached"
    found = mean_interval(values)
    return f"{mean(values):+.2g}" + (f" ({found[0]:.2g} to {found[1]:.2g})" if found else "")


def _spread(values: Sequence[float]) -> str:
    known = [x for x in values if math.isfinite(x)]
    return spread(known) if known else "-"


def _number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "-"


if __name__ == "__main__":
    write_page(*map(Path, sys.argv[1:3]))
