"""Figures 8b and 8c, and the common part of 10 and 11: many weights of R_3 on MNIST."""

import abc
from collections.abc import Sequence

from ..sweep.plan import Job
from ..sweep.results import Result
from . import mnist_sweep
from .arms import arms_of, paired
from .chart import Chart, Line, Panel
from .fronts import front_of
from .selection import choices_in_words, chosen_on_other_seeds
from .statistics import deviation, differences, mean, percent_more, quotients, spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import number, ratio


OF_MODELS = ("train_loss", "test_loss", "train_error", "test_error")
OF_SOLVES = ("train_nfe", "test_nfe", "train_nfe_std", "test_nfe_std", "test_num_samples")
# Smaller changes of a loss, in percent, do not count.
MARGIN = 2.0


class AbstractWeights(AbstractStudy):
    """Many weights of R_3, and their numbers over seeds."""

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Unregularized, and R_3 of all weights."""
        return mnist_sweep.jobs(scale, seeds, orders=(3,))

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """All columns, `[weight][seed]`, and the fronts on loss and classification error.

        Evaluations are counted at the small tolerance: at the other one, the counts are too small
        to differ. `finer_nfe_std` is the deviation for a solver that takes many small steps.
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

    def chart(self, numbers: Numbers) -> Chart:
        """One panel."""
        return Chart([self.panel(numbers)], height=4.0)

    @abc.abstractmethod
    def panel(self, numbers: Numbers) -> Panel:
        """The panel of the figure."""


def over_weights(numbers: Numbers, names: dict[str, str], y: str) -> Panel:
    """Some columns over weights, as means over seeds, the unregularized runs at the left end."""
    weights = [w or min(numbers["weights"][1:]) / 10 for w in numbers["weights"]]
    marks = []
    for i, (name, label) in enumerate(names.items()):
        means = [mean(x) for x in numbers[name]]
        errors = [deviation(x) for x in numbers[name]]
        # The unregularized point has no weight, so no line joins it to the others.
        marks += [
            Line(weights[part], means[part], label * j, i + 1, y_error=errors[part])
            for j, part in enumerate((slice(1), slice(1, None)))
        ]
    return Panel(marks, x="weight of R_3 (leftmost: none)", y=y, x_log=True)


class TrainAndTest(AbstractWeights):
    """Figure 8b."""

    name = "fig8b-nfe-overfitting"
    title = "Evaluations on training and on test data"

    def panel(self, numbers: Numbers) -> Panel:
        """Evaluations on test data against those on training data, run by run."""
        train, test = ([x for of_weight in numbers[k] for x in of_weight] for k in OF_SOLVES[:2])
        both = [min(train + test), max(train + test)]
        marks = [Line(both, both, "equal", -1), Line(train, test, "runs", 1, joined=False)]
        return Panel(marks, x="NFE on training data", y="NFE on test data")

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Training and test data take the same number of evaluations."""
        both = zip(numbers["test_nfe"], numbers["train_nfe"], strict=True)
        apart = [[abs(x - 1) for x in quotients(test, train)] for test, train in both]
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

    name = "fig8c-generalization"
    title = "Regularization and the loss on training and test data"

    def panel(self, numbers: Numbers) -> Panel:
        """Both losses over weights."""
        names = {"train_loss": "training loss", "test_loss": "test loss"}
        return over_weights(numbers, names, "loss, nats")

    def claims(self, numbers: Numbers) -> list[Claim]:
        """No weight lowers the test loss; large weights overfit less, but are worse."""
        train, test = numbers["train_loss"], numbers["test_loss"]
        best = _lowest_loss(numbers)
        relative = [test[i][seed] / test[0][seed] for seed, i in best.items()]
        chosen = [numbers["weights"][i] for i in best.values()]
        worse = quotients(test[-1], test[0])
        gaps = [differences(*both) for both in zip(test, train, strict=True)]
        less = differences(gaps[-1], [0.95 * x for x in gaps[0]])
        errors = numbers["test_error"]
        points = [100 * x for x in differences(errors[-1], errors[0])]
        return [
            judged(
                "Regularization does not usefully improve generalization",
                "no number",
                f"with the best weight on the other seeds, the test loss changes by "
                f"{spread(percent_more(relative))} % ({choices_in_words(chosen)})",
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
                f"with the largest weight, {spread(percent_more(worse))} % more loss and "
                f"{spread(points)} percentage points more error",
                ratio("loss with over without", worse, at_least=1 + MARGIN / 100),
                rule=f"at least {MARGIN:g} % more loss",
            ),
        ]


def _lowest_loss(numbers: Numbers) -> dict[int, int]:
    """For each seed, the index of the weight with the lowest test loss on the other seeds."""
    test = numbers["test_loss"]

    def best(seeds: list[int]) -> int:
        return min(range(1, len(test)), key=lambda i: mean(test[i][seed] for seed in seeds))

    return chosen_on_other_seeds(range(len(test[0])), best)
