"""Figures 8b, 8c, 10 and 11: runs on MNIST with R_3 of many weights, from four sides."""

import abc
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of, paired
from .chart import Chart, Line, Panel
from .fronts import Front, front_of, in_words, save_the_same
from .statistics import deviation, mean, rank_correlation, spread
from .study import AbstractStudy, Claim, seeds_agree, verdict


OF_MODELS = ("train_loss", "test_loss", "train_error", "test_error")
OF_SOLVES = ("train_nfe", "test_nfe", "train_nfe_std", "test_nfe_std")


class AbstractWeights(AbstractStudy):
    """Many weights of R_3, and their numbers over seeds."""

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Unregularized, and R_3 of all weights."""
        return mnist_sweep.jobs(scale, seeds, orders=(3,))

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """All columns, `[weight][seed]`, and the fronts on loss and classification error.

        Evaluations at the small tolerance: at the other one there are too few to be told apart.
        """
        tight = None if scale == "smoke" else mnist_sweep.EVALUATIONS[-1].name
        arms = paired(arms_of(results))
        return {
            "weights": [arm.weight for arm in arms],
            **{name: [arm.listed(name) for arm in arms] for name in OF_MODELS},
            **{name: [arm.listed(name, tight) for arm in arms] for name in OF_SOLVES},
            "fronts": {name: front_of(arms, loss=name, evaluation=tight) for name in OF_MODELS},
        }

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """One panel."""
        return Chart([self.panel(numbers)], height=4.0)

    @abc.abstractmethod
    def panel(self, numbers: dict[str, Any]) -> Panel:
        """What is drawn."""


def means(values: Sequence[Sequence[float]]) -> list[float]:
    """Over seeds."""
    return [mean(x) for x in values]


def _over_weights(numbers: dict[str, Any], names: dict[str, str], y: str) -> Panel:
    """Some columns over weights, the unregularized runs at the left end."""
    weights = [w or min(numbers["weights"][1:]) / 10 for w in numbers["weights"]]
    marks = [
        Line(weights, means(numbers[name]), label, i + 1)
        for i, (name, label) in enumerate(names.items())
    ]
    return Panel(marks, x="weight of R_3 (leftmost: none)", y=y, x_log=True)


class TrainAndTest(AbstractWeights):
    """Figure 8b."""

    name: ClassVar[str] = "fig8b-nfe-overfitting"
    title: ClassVar[str] = "Evaluations on training and on test data"

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """One against the other."""
        train, test = means(numbers["train_nfe"]), means(numbers["test_nfe"])
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
            Claim(
                "The number of evaluations does not overfit",
                "nearly identical",
                f"for the weight where they differ most, {spread(largest)} % apart",
                verdict(seeds_agree(largest, at_most=5.0)),
            )
        ]


class Generalization(AbstractWeights):
    """Figure 8c."""

    name: ClassVar[str] = "fig8c-generalization"
    title: ClassVar[str] = "Regularization and the error on training and test data"

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """Both errors over weights."""
        names = {"train_error": "training error", "test_error": "test error"}
        return _over_weights(numbers, names, "share of wrong classes")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """No weight is of use; large ones overfit less, and are worse."""
        train, test = numbers["train_error"], numbers["test_error"]
        changes = [[100 * (b - a) for a, b in zip(test[0], x, strict=True)] for x in test[1:]]
        best = min(changes, key=mean)
        weight = numbers["weights"][1 + changes.index(best)]
        gaps = [
            [100 * (b - a) for a, b in zip(*both, strict=True)]
            for both in zip(train, test, strict=True)
        ]
        smaller = [b - a for a, b in zip(gaps[0], gaps[-1], strict=True)]
        return [
            Claim(
                "Regularization does not usefully improve generalization",
                "no number",
                f"with the best weight, {weight:g}, the test error changes by {spread(best)} "
                "percentage points",
                verdict(None if (found := seeds_agree(best, at_most=-0.1)) is None else not found),
            ),
            Claim(
                "A large weight lessens overfitting",
                "no number",
                f"test error above training error by {spread(gaps[0])} without and "
                f"{spread(gaps[-1])} percentage points with the largest weight",
                verdict(seeds_agree(smaller, at_most=0.0)),
            ),
            Claim(
                "A large weight raises the test error",
                "no number",
                f"by {spread(changes[-1])} percentage points, with the largest weight",
                verdict(seeds_agree(changes[-1], at_least=0.0)),
            ),
        ]


class Variance(AbstractWeights):
    """Figure 10."""

    name: ClassVar[str] = "fig10-nfe-variance"
    title: ClassVar[str] = "How evaluations vary from sample to sample"

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """The standard deviation, and the distance of training and test data, over weights."""
        names = {"test_nfe_std": "standard deviation", "distance": "|training - test|"}
        return _over_weights(numbers | {"distance": _distances(numbers)}, names, "NFE")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """The variance is not monotone, and tells the distance."""
        deviations = means(numbers["test_nfe_std"])
        noise = max(deviation(x) for x in numbers["test_nfe_std"])
        # More than seeds differ, up and down again.
        rises = any(b - a > noise for a, b in itertools.combinations(deviations, 2))
        falls = any(a - b > noise for a, b in itertools.combinations(deviations, 2))
        by_seed = (zip(*x, strict=True) for x in (numbers["test_nfe_std"], _distances(numbers)))
        rho = [rank_correlation(a, b) for a, b in zip(*by_seed, strict=True)]
        return [
            Claim(
                "The variance of evaluations is not monotone in the weight",
                "no number",
                "standard deviations "
                + ", ".join(f"{x:.2g}" for x in deviations)
                + f" as means over seeds, between which they vary by up to {noise:.2g}",
                verdict((rises and falls) if noise > 0 else None, noise),
            ),
            Claim(
                "The distance of training and test data follows the variance",
                "a striking correspondence",
                f"rank correlation {spread(rho)}",
                verdict(seeds_agree(rho, at_least=0.5)),
            ),
        ]


def _distances(numbers: dict[str, Any]) -> list[list[float]]:
    return [
        [abs(a - b) for a, b in zip(train, test, strict=True)]
        for train, test in zip(numbers["train_nfe"], numbers["test_nfe"], strict=True)
    ]


class ClassificationError(AbstractWeights):
    """Figure 11."""

    name: ClassVar[str] = "fig11-classification-error"
    title: ClassVar[str] = "What error is paid for fewer evaluations"

    def panel(self, numbers: dict[str, Any]) -> Panel:
        """Errors on training and test data."""
        names = {"train_error": "training error", "test_error": "test error"}
        marks = [
            Front(**numbers["fronts"][key]).line(label, i + 1)
            for i, (key, label) in enumerate(names.items())
        ]
        return Panel(marks, x="NFE per test sample", y="error")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """It is as for the loss."""
        found = {name: Front(**numbers["fronts"][name]).within(0.05) for name in OF_MODELS}
        words = [f"{name.replace('_', ' ')} {in_words(x)}" for name, x in found.items()]
        return [
            Claim(
                "The trade-off is much the same for the classification error as for the loss",
                "similar curves",
                f"saved for 5 % more, relatively: {'; '.join(words)}",
                verdict(save_the_same(found["train_error"][1], found["train_loss"][1])),
            )
        ]
