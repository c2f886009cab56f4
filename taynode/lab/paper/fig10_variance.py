"""Figure 10: how evaluations vary from sample to sample, over weights of R_3 on MNIST."""

import math
from collections.abc import Sequence

from ...ranks import rank_correlation
from .chart import Panel
from .fig8_weights import AbstractWeights, over_weights
from .selection import chosen_on_other_seeds
from .statistics import deviation, differences, mean, spread
from .study import Claim, judged, Numbers
from .verdicts import number


class Variance(AbstractWeights):
    """Figure 10."""

    name = "fig10-nfe-variance"
    title = "How evaluations vary from sample to sample"

    def panel(self, numbers: Numbers) -> Panel:
        """Standard deviations, and the distance of training and test data, over weights."""
        names = {
            "train_nfe_std": "standard deviation, training",
            "test_nfe_std": "standard deviation, test",
            "distance": "|training - test|",
        }
        return over_weights(numbers | {"distance": _distances(numbers)}, names, "NFE")

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The variance is not monotone in the weight, and the distance follows it."""
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


def _is_not_monotone(numbers: Numbers) -> Claim:
    """A claim on Dopri5, the paper's solver. Heun, which takes small steps, is shown beside it.

    The counts of Dopri5 are multiples of six apart, so its deviation is small wherever most samples
    take the same number of steps.
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

    The weight and the side at which it leaves the range most are chosen on the other seeds.
    Monotone curves stay within the range.
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


def _is_noise(numbers: Numbers) -> Claim:
    """Whether means over training and test data differ by their standard error."""
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
        # By chance, one in twenty runs.
        number("share of weights", shares if len(far) > 3 else [], at_most=0.1),
        rule="in at most one of ten runs",
    )


def _distances(numbers: Numbers) -> list[list[float]]:
    both = zip(numbers["train_nfe"], numbers["test_nfe"], strict=True)
    return [[abs(x) for x in differences(train, test)] for train, test in both]
