"""When claims hold: intervals against an independent library, and verdicts by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from taynode.lab.paper.selection import chosen_on_other_seeds
from taynode.lab.paper.statistics import mean_interval, student_quantile
from taynode.lab.paper.study import judged
from taynode.lab.paper.verdicts import by_chance, number, ratio, verdict


@pytest.mark.parametrize("freedom", [*range(1, 12), 29, 100])
def test_quantiles_of_student(freedom):
    assert student_quantile(freedom) == pytest.approx(stats.t.ppf(0.95, freedom), rel=1e-12)


@pytest.mark.parametrize(("count", "half"), [(3, 1.6859), (5, 0.9534)])
def test_half_an_interval_in_standard_deviations(count, half):
    values = np.linspace(-1.0, 1.0, count)
    values = 7.0 + values / np.std(values, ddof=1)
    assert mean_interval(values) == pytest.approx((7.0 - half, 7.0 + half), abs=1e-4)


def test_a_ratio_is_judged_by_its_logarithm():
    values = [0.5, 0.6, 0.9]
    logs = np.log(values)
    expected = np.array(stats.t.interval(0.9, 2, np.mean(logs), stats.sem(logs)))
    assert ratio("", values).interval() == pytest.approx(tuple(np.exp(expected)))
    # The same claim, the other way round.
    found = ratio("", [1 / x for x in values]).interval()
    assert found == pytest.approx(tuple(1 / np.exp(expected[::-1])))


def test_three_seeds_that_agree_by_chance_decide_nothing():
    """All three are below the threshold, as one time in four at the threshold itself."""
    assert verdict([number("", [0.45, 0.3, 0.1], at_most=0.5)]) == "undecided"
    assert verdict([number("", [0.25, 0.2, 0.3], at_most=0.5)]) == "holds"
    assert verdict([number("", [0.25, 0.2, 0.3], at_least=0.5)]) == "does not hold"


def test_share_of_verdicts_by_chance_is_a_tenth():
    """The true value lies on the threshold: a twentieth holds, and as many fail."""
    draws = np.random.RandomState(0).normal(size=(4000, 3))
    verdicts = [verdict([number("", row, at_most=0.0)]) for row in draws.tolist()]
    # Three standard deviations of a share of 4000.
    assert verdicts.count("holds") / 4000 == pytest.approx(0.05, abs=0.0104)
    assert verdicts.count("does not hold") / 4000 == pytest.approx(0.05, abs=0.0104)


@pytest.mark.parametrize(
    "values", [[], [0.1], [0.1, math.nan], [0.1, math.inf], [0.1, 0.0], [0.1, -1.0]]
)
def test_what_is_not_there_decides_nothing(values):
    """Nor has a ratio that is not positive a logarithm."""
    assert verdict([ratio("", values, at_most=0.5)]) == "undecided"


def test_several_bounds_and_the_range_between_two():
    kept, broken, open_ = (
        ratio("", values, at_least=0.8, at_most=1.25)
        for values in ([1.0, 1.01, 0.99], [2.0, 2.01, 2.02], [1.0, 1.2, 1.4])
    )
    assert verdict([kept, kept]) == "holds"
    assert verdict([kept, open_]) == "undecided"
    assert verdict([open_, broken]) == "does not hold"
    assert verdict([]) == "undecided"


def test_differences_that_cannot_be_resolved_decide_nothing():
    values = [1.03, 1.031, 1.032]
    assert verdict([ratio("", values, at_least=1.0)]) == "holds"
    assert verdict([ratio("", values, at_least=1.0, resolution=0.05)]) == "undecided"
    assert verdict([ratio("", [1 / x for x in values], at_least=1.0)]) == "does not hold"


def test_the_interval_is_shown_beside_the_rule():
    claim = judged("", "", "", ratio("NFE", [0.5, 0.5], at_most=0.6), rule="at most 0.6")
    assert (claim.verdict, claim.interval) == ("holds", "NFE: 0.5 to 0.5, n = 2")


def test_claims_decided_by_chance_are_counted():
    """Those without an interval are no matter of chance."""
    claims = [{"interval": "0 to 1"}] * 20 + [{"interval": ""}] * 5
    assert "Of 20 claims judged by such intervals, chance alone would decide about 2.0" in (
        by_chance(claims)
    )
    assert by_chance(claims[-2:]) == ""


def test_the_best_weight_of_noise_is_none_on_other_seeds():
    """Of many weights that all do nothing, the best seems to do something on its own seeds."""
    losses = np.random.RandomState(1).normal(size=(200, 3, 30))
    best = lambda x: lambda seeds: int(np.argmin(x[seeds].mean(axis=0)))
    left_out = [
        x[seed, weight]
        for x in losses
        for seed, weight in chosen_on_other_seeds(range(3), best(x)).items()
    ]
    by_itself = [x[:, best(x)([0, 1, 2])].mean() for x in losses]
    assert np.mean(by_itself) < -1.0
    # Three standard errors of 600 draws.
    assert np.mean(left_out) == pytest.approx(0.0, abs=3 / 600**0.5)
