"""The course of a weight that follows measurements, and of the evaluations that it holds."""

from collections.abc import Sequence

from .figures import clock, Figure, line, over_time, short
from .formats import is_number
from .groups import Group
from .runs import StoredRun


def course(run: StoredRun, time: str) -> tuple[list[float], list[float], list[float]]:
    """Times of measurements, the weights there, and the evaluations."""
    last = run.last
    unit = last["epoch"] / last["step"] if time == "epoch" and last.get("step") else 1.0
    measured = [entry for row in run.rows for entry in row.get("course", ())]
    times = [unit * step for step, _, _ in measured]
    return times, [weight for _, weight, _ in measured], [nfe for _, _, nfe in measured]


def budget_line(group: Group, end: float) -> list[Figure]:
    """A horizontal line at the budget of a group, if it has one."""
    budget = group.runs[0].regularizer.get("budget")
    if not is_number(budget):
        return []
    dashed = {"line": {"dash": "dot", "width": 1.5}, "mode": "lines"}
    return [line(group, 0, [0.0, end], [budget, budget], "budget %{y:.4g}", **dashed)]


def weight_figure(groups: Sequence[Group]) -> Figure | None:
    """The weight during training, of each group whose weight follows measurements."""
    time = clock(groups)
    traces = []
    for i, group in enumerate(groups):
        for run in group.runs:
            times, weights, nfe = course(run, time)
            # A logarithm has no place for the weight 0 of the beginning.
            shown = [weight if weight > 0 else float("nan") for weight in weights]
            if any(weight > 0 for weight in weights):
                hover = "weight %{y:.3g}, %{customdata:.1f} evaluations"
                more = {"customdata": short(nfe), "marker": {"size": 4}}
                trace = line(group, i, times, [0.0] * len(times), hover, **more)
                traces.append(trace | {"y": short(shown)})
    if not traces:
        return None
    return {"data": traces, "layout": over_time(time, yaxis={"type": "log", "tickformat": ".0e"})}
