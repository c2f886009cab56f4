"""Figures 8b, 8c, 10 and 11: runs on MNIST with R_3 of many weights, from four sides."""

import abc
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of
from .chart import Chart, Line, Panel
from .fronts import Front, front_of
from .statistics import deviation, mean, rank_correlation, spread
from .study import AbstractStudy, Claim, verdict


COLUMNS = (
    "train_loss",
    "test_loss",
    "train_error",
    "test_error",
    "train_nfe",
    "test_nfe",
    "train_nfe_std",
    "test_nfe_std",
)


class AbstractWeights(AbstractStudy):
    """Many weights of R_3, and their numbers over seeds."""

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Unregularized, and R_3 of all weights."""
        return mnist_sweep.jobs(scale, seeds, orders=(3,))

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """All columns, `[weight][seed]`, and the front on the classification error."""
        del scale
        arms = arms_of(results)
        return {
            "weights": [arm.weight for arm in arms],
            **{name: [arm.listed(name) for arm in arms] for name in COLUMNS},
            "error_front": front_of(arms, loss="train_error"),
            "test_error_front": front_of(arms, loss="test_error"),
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
        pairs = zip(means(numbers["train_nfe"]), means(numbers["test_nfe"]), strict=True)
        largest = max(abs(test / train - 1) for train, test in pairs)
        return [
            Claim(
                "The number of evaluations does not overfit",
                "nearly identical",
                f"at most {largest:.1%} apart",
                verdict(largest < 0.05, largest),
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
        """Large weights overfit less, and are worse."""
        gaps = [
            mean(b - a for a, b in zip(train, test, strict=True))
            for train, test in zip(numbers["train_error"], numbers["test_error"], strict=True)
        ]
        errors = numbers["test_error"]
        return [
            Claim(
                "A large weight lessens overfitting",
                "no number",
                f"test error above training error by {gaps[0]:.2%} without and {gaps[-1]:.2%} "
                "with the largest weight",
                verdict(gaps[-1] < gaps[0], *gaps),
            ),
            Claim(
                "A large weight raises the test error",
                "no number",
                f"{spread(errors[0])} without, {spread(errors[-1])} with the largest weight",
                verdict(means(errors)[-1] > means(errors)[0], *means(errors)),
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
        deviations, distances = means(numbers["test_nfe_std"]), means(_distances(numbers))
        noise = max(deviation(x) for x in numbers["test_nfe_std"])
        # More than seeds differ, up and down again.
        rises = any(b - a > noise for a, b in itertools.combinations(deviations, 2))
        falls = any(a - b > noise for a, b in itertools.combinations(deviations, 2))
        rho = rank_correlation(deviations, distances)
        return [
            Claim(
                "The variance of evaluations is not monotone in the weight",
                "no number",
                "standard deviations "
                + ", ".join(f"{x:.2g}" for x in deviations)
                + f", which differ by up to {noise:.2g} between seeds",
                verdict(rises and falls, noise),
            ),
            Claim(
                "The distance of training and test data follows the variance",
                "no number",
                f"rank correlation {rho:.2f}",
                verdict(rho > 0.5, rho),
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
        names = {"error_front": "training error", "test_error_front": "test error"}
        marks = [
            Front(**numbers[key]).line(label, i + 1) for i, (key, label) in enumerate(names.items())
        ]
        return Panel(marks, x="NFE per test sample", y="error")

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Evaluations can be saved without errors."""
        front = Front(**numbers["test_error_front"])
        saved = front.at_extra_loss(0.05)
        return [
            Claim(
                "Evaluations can be saved at nearly the same classification error",
                "no number",
                f"{spread([100 * x for x in saved])} % for 5 % more test error, relatively",
                verdict(mean(saved) > 0.1, mean(saved)),
            )
        ]
