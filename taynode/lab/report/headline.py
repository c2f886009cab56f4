"""The outcome of the runs in a sentence."""

from collections.abc import Sequence

from .formats import change, percent, SPACE
from .groups import flatten, Group, Summary


def headlines(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """A sentence for each task, and a remark that may be empty."""
    known = [group for group in groups if group.last("test_nfe").mean is not None]
    if not known:
        return [("Nothing was measured: there are no evaluations in the metrics of any run.", "")]
    tasks = list(dict.fromkeys(group.task for group in known))
    sentences = []
    for task in tasks:
        text, remark = _headline([group for group in known if group.task == task])
        sentences.append((f"{task}: {text}" if len(tasks) > 1 else text, remark))
    return sentences


def quality(group: Group) -> tuple[str, Summary]:
    """The measure of a model: its test error, or else its test loss."""
    error = group.last("test_error")
    if error.mean is not None:
        return "test_error", error
    return "test_loss", group.last("test_loss")


def show_quality(name: str, summary: Summary) -> str:
    """An error as a percentage with its deviation, a loss as a number."""
    if name == "test_loss":
        return summary.text()
    if summary.std is None:
        return percent(summary.mean)
    mean, std = (None if x is None else 100 * x for x in (summary.mean, summary.std))
    return f"{Summary(mean, std, summary.count).text(1)}{SPACE}%"


def _headline(known: list[Group]) -> tuple[str, str]:
    if len(known) == 1:
        return _alone(known[0]), ""
    baselines = [group for group in known if group.is_baseline]
    others = [group for group in known if not group.is_baseline]
    if len(baselines) != 1 or not others:
        return _range(known), ""
    return _comparison(baselines[0], others)


def _alone(group: Group) -> str:
    nfe, (name, value) = group.last("test_nfe"), quality(group)
    what = f"{group.task} with {group.label}"
    seeds = f", {nfe.count} seeds" if nfe.count > 1 else ""
    found = f" at a {_word(name)} of {show_quality(name, value)}" if value.mean is not None else ""
    return f"{what}: {nfe.text(1)} evaluations per test sample{found}{seeds}."


def _range(groups: list[Group]) -> str:
    least, most = (
        pick(groups, key=lambda group: group.last("test_nfe").mean or 0.0) for pick in (min, max)
    )
    return (
        f"{len(groups)} configurations of {least.task}: from "
        f"{least.last('test_nfe').text(1)} evaluations per test sample ({least.label}) to "
        f"{most.last('test_nfe').text(1)} ({most.label})."
    )


def _comparison(baseline: Group, others: list[Group]) -> tuple[str, str]:
    """The cheapest model that is as good as the unregularized one, or else the cheapest."""
    as_good = [group for group in others if _is_as_good(group, baseline)]
    best = min(as_good or others, key=lambda group: group.last("test_nfe").mean or 0.0)
    before, after = baseline.last("test_nfe"), best.last("test_nfe")
    verb = _verb(before.mean or 0.0, after.mean or 0.0)
    numbers = f"evaluations from {before.text(1)} to {after.text(1)}"
    seeds = f", {_seeds(before.count, after.count)}" if max(before.count, after.count) > 1 else ""
    moved = f" ({change(before.mean, after.mean)}{seeds})"
    text = f"{best.title} {verb} {numbers}{moved}{_against(baseline, best)}."
    remarks = [_among(len(others), bool(as_good))] if len(others) > 1 else []
    return text, " ".join([*remarks, *_doubts(baseline, best)])


def _doubts(baseline: Group, best: Group) -> list[str]:
    """Reasons why two groups may not be comparable."""
    doubts = []
    ends = [(group.last("epoch").mean or group.last("step").mean) for group in (baseline, best)]
    if ends[0] != ends[1]:
        doubts.append("But they were not trained equally long.")
    first, second = (flatten(group.runs[0].config) for group in (baseline, best))
    names = [
        name
        for name in first | second
        if name != "seed" and not name.startswith("regularizer.")
        if first.get(name) != second.get(name)
    ]
    if names:
        doubts.append(f"But they differ in {', '.join(names)} as well.")
    return doubts


def _among(count: int, any_as_good: bool) -> str:
    if any_as_good:
        return f"Of {count} regularized ones, it is the cheapest that is no worse than without."
    return f"It is the cheapest of {count} regularized ones, none of which is as good as without."


def _is_as_good(group: Group, baseline: Group) -> bool:
    (name, value), (other, limit) = quality(group), quality(baseline)
    if name != other or value.mean is None or limit.mean is None:
        return False
    return value.mean <= limit.mean


def _against(baseline: Group, best: Group) -> str:
    (name, value), (other, before) = quality(best), quality(baseline)
    if value.mean is None:
        return f"; its {_word(name)} is not known"
    found = f" at a {_word(name)} of {show_quality(name, value)}"
    if name != other or before.mean is None:
        return found
    old = show_quality(name, before)
    same = old == show_quality(name, value)
    return f"{found}, the same as without" if same else f"{found} instead of {old}"


def _verb(before: float, after: float) -> str:
    if abs(after - before) < 0.005 * before:
        return "hardly changes"
    return "cuts" if after < before else "raises"


def _seeds(before: int, after: int) -> str:
    return f"{before} seeds each" if before == after else f"{before} and {after} seeds"


def _word(name: str) -> str:
    return name.replace("_", " ")
