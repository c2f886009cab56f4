"""Figures 8b, 8c, 10 and 11: runs on MNIST with R_3 of many weights, from four sides."""

import abc
import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of, paired
from .chart import Chart, Line, Panel
from .fronts import Front, front_of, REMARK
from .selection import choices_in_words, chosen_on_other_seeds
from .statistics import deviation, mean, percent_more, quotients, rank_correlation, spread
from .study import AbstractStudy, Claim, judged
from .verdicts import number, ratio


OF_MODELS = ("train_loss", "test_loss", "train_error", "test_error")
OF_SOLVES = ("train_nfe", "test_nfe", "train_nfe_std", "test_nfe_std", "test_num_samples")
# Less of a change of a loss, in percent, is none.
MARGIN = 2.0
CUTS = (0.01, 0.02, 0.05, 0.1)


class AbstractWeights(AbstractStudy):
    """Many weights of R_3, and their numbers over seeds."""

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Unregularized, and R_3 of all weights."""
        return mnist_sweep.jobs(scale, seeds, orders=(3,))

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """All columns, `[weight][seed]`, and the fronts on loss and classification error.

        Evaluations at the small tolerance: at the other one there are too few to be told apart.
        Besides, how those of a solver vary that takes many small steps.
        """
        is_smoke = scale == "smoke"
        tight, many = (None if is_smoke else mnist_sweep.EVALUATIONS[i].name for i in (-1, 0))
        arms = paired(arms_of(results))
        return {
            "weights": [arm.weight for arm in arms],
            **{name: [arm.listed(name) for arm in arms] for name in OF_MODELS},
            **{name: [arm.listed(name, tight) for arm in arms] for name in OF_SOLVES},
            "finer_nfe_std": [arm.listed("test_nfe_std", many) for arm in arms],
            "fronts": {name: front_of(arms, loss=name, evaluation=tight) for name in OF_MODELS},
        }

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """One panel."""
        return Chart([self.panel(numbers)], height=4.0)

    @abc.abstractmethod
    def panel(self, numbers: dict[str, Any]) -> Panel:
        """What is drawn."""


def _over_weights(numbers: dict[str, Any], names: dict[str, str], y: str) -> Panel:
    """Some columns over weights, as means over seeds, the unregularized runs at the left end."""
    weights = [w or min(numbers["weights"][1:]) / 10 for w in numbers["weights"]]
    marks = []
    for i, (name, label) in enumerate(names.items()):
        means = [mean(x) for x in numbers[name]]
        errors = [deviation(x) for x in numbers[name]]
        # Not joined to the others: it is at no weight.
        marks += [
            Line(weights[part], means[part], label * j, i + 1, y_error=errors[part])
            for j, part in enumerate((slice(1), slice(1, None)))
        ]
    return Panel(marks, x="weight of R_3 (leftmost: none)", y=y, x_log=True)


class TrainAndTest(AbstractWeights):
    """Figure 8b."""

    name: ClassVar[str] = "fig8b-nfe-overfitting"
    title: ClassVar[str] = "Evaluations on training and on test data"

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """One against the other."""
        train, test = ([x for of_weight in numbers[k] for x in of_weight] for k in OF_SOLVES[:2])
        both = [min(train + test), max(train + test)]
        marks = [Line(both, both, "equal", -1), Line(train, test, "runs", 1, joined=False)]
        return Panel(marks, x="NFE on training data", y="NFE on test data")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """They are the same."""
        apart = [
            [abs(b / a - 1) for a, b in zip(train, test, strict=True)]
            for train, test in zip(numbers["train_nfe"], numbers["test_nfe"], strict=True)
        ]
        largest = [100 * max(x) for x in zip(*apart, strict=True)]
        return [
            judged(
                "The number of evaluations does not overfit",
                "nearly identical",
                f"for the weight where they differ most, {spread(largest)} % apart",
                number("percent", largest, at_most=5.0),
                rule="at most 5 % apart, for every weight",
            )
        ]


class Generalization(AbstractWeights):
    """Figure 8c."""

    name: ClassVar[str] = "fig8c-generalization"
    title: ClassVar[str] = "Regularization and the loss on training and test data"

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """Both losses over weights."""
        names = {"train_loss": "training loss", "test_loss": "test loss"}
        return _over_weights(numbers, names, "loss, nats")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """No weight is of use; large ones overfit less, and are worse."""
        train, test = numbers["train_loss"], numbers["test_loss"]
        best = _lowest_loss(numbers)
        relative = [test[i][seed] / test[0][seed] for seed, i in best.items()]
        chosen = [numbers["weights"][i] for i in best.values()]
        worse = percent_more(test[-1], test[0])
        gaps = [
            [b - a for a, b in zip(*both, strict=True)] for both in zip(train, test, strict=True)
        ]
        less = [b - 0.95 * a for a, b in zip(gaps[0], gaps[-1], strict=True)]
        error = [
            100 * (b - a) for a, b in zip(*(numbers["test_error"][i] for i in (0, -1)), strict=True)
        ]
        return [
            judged(
                "Regularization does not usefully improve generalization",
                "no number",
                f"with the best weight on the other seeds, the test loss changes by "
                f"{spread([100 * (x - 1) for x in relative])} % ({choices_in_words(chosen)})",
                ratio("loss with over without", relative, at_least=1 - MARGIN / 100),
                rule=f"that weight lowers it by at most {MARGIN:g} %",
            ),
            judged(
                "A large weight lessens overfitting",
                "no number",
                f"test loss above training loss by {spread(gaps[0])} without and "
                f"{spread(gaps[-1])} nats with the largest weight",
                # Not a ratio: a distance may be zero or negative.
                number("nats, less 0.95 of those without", less, at_most=0.0),
                rule="the distance falls by at least 5 %",
            ),
            judged(
                "A large weight is worse on test data",
                "no number",
                f"with the largest weight, {spread(worse)} % more loss and {spread(error)} "
                "percentage points more error",
                ratio(
                    "loss with over without",
                    quotients(test[-1], test[0]),
                    at_least=1 + MARGIN / 100,
                ),
                rule=f"at least {MARGIN:g} % more loss",
            ),
        ]


def _lowest_loss(numbers: dict[str, Any]) -> dict[int, int]:
    """For each seed, the place of the weight with the lowest test loss on the other seeds."""
    test = numbers["test_loss"]

    def best(seeds: list[int]) -> int:
        return min(range(1, len(test)), key=lambda i: mean(test[i][seed] for seed in seeds))

    return chosen_on_other_seeds(range(len(test[0])), best)


class Variance(AbstractWeights):
    """Figure 10."""

    name: ClassVar[str] = "fig10-nfe-variance"
    title: ClassVar[str] = "How evaluations vary from sample to sample"

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """Standard deviations, and the distance of training and test data, over weights."""
        names = {
            "train_nfe_std": "standard deviation, training",
            "test_nfe_std": "standard deviation, test",
            "distance": "|training - test|",
        }
        return _over_weights(numbers | {"distance": _distances(numbers)}, names, "NFE")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """The variance is not monotone, and tells the distance."""
        by_seed = (zip(*x, strict=True) for x in (numbers["test_nfe_std"], _distances(numbers)))
        rho = [rank_correlation(a, b) for a, b in zip(*by_seed, strict=True)]
        return [
            _is_not_monotone(numbers),
            judged(
                "The distance of training and test data follows the variance",
                "a striking correspondence",
                f"rank correlation over weights {spread(rho)}",
                number("rank correlation", rho, at_least=0.5),
                rule="at least 0.5",
            ),
            _is_noise(numbers),
        ]


def _is_not_monotone(numbers: dict[str, Any]) -> Claim:
    """For the paper's solver; one whose steps are small is shown beside it.

    Dopri5 counts in sixes: its deviation is small wherever most samples take the same steps.
    """
    of_solvers = {"Dopri5": numbers["test_nfe_std"], "Heun": numbers["finer_nfe_std"]}
    words = [
        f"with {name} {', '.join(f'{mean(x):.2g}' for x in deviations)}, which vary by up to "
        f"{max(map(deviation, deviations)):.2g} between seeds"
        for name, deviations in of_solvers.items()
    ]
    return judged(
        "The variance of evaluations is not monotone in the weight",
        "no number",
        f"standard deviations, as means over seeds: {'; '.join(words)}",
        number("beyond both ends", _beyond_the_ends(of_solvers["Dopri5"]), at_least=0.0),
        rule="at a weight chosen on the other seeds, the deviation of Dopri5 is beyond both ends: "
        "no regularization and the largest weight",
    )


def _beyond_the_ends(deviations: Sequence[Sequence[float]]) -> list[float]:
    """By how much a curve `[weight][seed]` leaves the range between its two ends, for each seed.

    Where and to which side it does so most is chosen on the other seeds. Monotone curves do not.
    """

    def beyond(place: tuple[int, int], seeds: Sequence[int]) -> float:
        i, sign = place
        middle = mean(deviations[i][seed] for seed in seeds)
        ends = (mean(deviations[end][seed] for seed in seeds) for end in (0, -1))
        return min(sign * (middle - end) for end in ends)

    places = [(i, sign) for i in range(1, len(deviations) - 1) for sign in (1, -1)]
    if not places:
        return []
    best = lambda seeds: max(places, key=lambda place: beyond(place, seeds))
    chosen = chosen_on_other_seeds(range(len(deviations[0])), best)
    return [beyond(place, [seed]) for seed, place in chosen.items()]


def _is_noise(numbers: dict[str, Any]) -> Claim:
    """Whether means over training and test data are apart by what means over samples vary."""
    far = []
    columns = (numbers[name] for name in ("train_nfe_std", "test_nfe_std", "test_num_samples"))
    for *of_weight, distances in zip(*columns, _distances(numbers), strict=True):
        errors = [math.sqrt((a**2 + b**2) / n) for a, b, n in zip(*of_weight, strict=True)]
        far.append([x > 2 * max(error, 1e-9) for x, error in zip(distances, errors, strict=True)])
    shares = [mean(map(float, of_seed)) for of_seed in zip(*far, strict=True)]
    count, total = sum(map(sum, far)), sum(map(len, far))
    return judged(
        "Evaluations on training and test data differ by noise only",
        "suggested by the correspondence",
        f"in {count} of {total} runs the means are more than two standard errors apart",
        # By chance it would be one in twenty.
        number("share of weights", shares if len(far) > 3 else [], at_most=0.1),
        rule="in at most one of ten runs",
    )


def _distances(numbers: dict[str, Any]) -> list[list[float]]:
    return [
        [abs(a - b) for a, b in zip(train, test, strict=True)]
        for train, test in zip(numbers["train_nfe"], numbers["test_nfe"], strict=True)
    ]


class ClassificationError(AbstractWeights):
    """Figure 11."""

    name: ClassVar[str] = "fig11-classification-error"
    title: ClassVar[str] = "Classification error against evaluations"
    remarks: ClassVar[tuple[str, ...]] = (REMARK,)

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """Errors on training and test data."""
        names = {"train_error": "training error", "test_error": "test error"}
        marks = [
            mark
            for i, (key, label) in enumerate(names.items())
            for mark in Front(**numbers["fronts"][key]).marks(label, i + 1)
        ]
        return Panel(marks, x="NFE per test sample", y="increase of the classification error, %")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """It is as for the loss."""
        error, loss = (Front(**numbers["fronts"][f"train_{x}"]) for x in ("error", "loss"))
        found = {cut: (error.within(cut), loss.within(cut)) for cut in CUTS}
        words = [f"{cut:.0%}: {a.in_words()} and {b.in_words()}" for cut, (a, b) in found.items()]
        return [
            judged(
                "The trade-off is much the same for the classification error as for the loss",
                "similar curves",
                "saved, and its price, with the best weight on the other seeds for at most so much "
                f"more training error, and so much more training loss: {'; '.join(words)}",
                *(
                    a.like(b, f"difference of the shares saved, {cut:.0%}")
                    for cut, (a, b) in found.items()
                ),
                rule="what is saved differs by at most 10 percentage points",
            )
        ]
