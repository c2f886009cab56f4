"""What is made of many runs, against numbers by hand and an independent library."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from taynode.lab.paper.arms import arms_of, MissingRuns
from taynode.lab.paper.fronts import Front, in_words, is_lowest
from taynode.lab.paper.mnist_sweep import jobs, weight_of
from taynode.lab.paper.statistics import rank_correlation, spread
from taynode.lab.paper.study import all_of, seeds_agree
from taynode.lab.paper.taylor_cost import fit_errors


FRONT = Front(
    weights=[0.0, 0.1, 1.0],
    nfe=[{"0": 40.0, "1": 50.0}, {"0": 30.0, "1": 20.0}, {"0": 20.0, "1": 20.0}],
    loss=[{"0": 1.0, "1": 1.0}, {"0": 1.04, "1": 1.0}, {"0": 1.2, "1": 1.6}],
)


def test_evaluations_saved_for_some_more_loss():
    """By one weight for all seeds, whose losses are 1.02 and 1.4 on average."""
    assert FRONT.within(0.01) == (0.0, [0.0, 0.0])
    assert FRONT.within(0.05) == (0.1, [0.25, pytest.approx(0.6)])
    assert FRONT.within(0.5) == (1.0, [0.5, pytest.approx(0.6)])
    assert in_words(FRONT.within(0.05)) == "42 ± 25 % (weight 0.1)"


def test_a_run_that_failed_is_not_taken_for_one_of_another_seed():
    front = Front(
        [0.0, 1.0], [{"0": 40.0, "1": 50.0}, {"1": 25.0}], [{"0": 1.0, "1": 1.0}, {"1": 1.0}]
    )
    assert front.within(0.01) == (1.0, [0.5])
    assert list(front.area()) == ["1"]


def test_losses_may_be_negative():
    front = Front([0.0, 1.0], [{"0": 40.0}, {"0": 20.0}], [{"0": -2.0}, {"0": -1.95}])
    assert front.within(0.01) == (0.0, [0.0])
    assert front.within(0.05) == (1.0, [0.5])


def test_area_under_a_front():
    # Of the 51 bounds from 1 to 1.5, those below 1.04 and 1.2 are 4 and 20.
    assert FRONT.area() == {
        "0": pytest.approx((4 * 40 + 16 * 30 + 31 * 20) / 51 / 40),
        "1": pytest.approx(0.4),
    }
    # Up to 1.1, those below 1.04 are 20.
    assert FRONT.area(0.1)["0"] == pytest.approx((20 * 40 + 31 * 30) / 51 / 40)
    assert FRONT.reach() == pytest.approx(0.4)


def test_front_is_drawn_with_what_seeds_differ_by():
    front, dots = FRONT.marks("R_2", 1)
    assert dots.x == [45.0, 25.0, 20.0]
    assert dots.y == pytest.approx([0.0, 2.0, 40.0])
    assert dots.y_error[2] == pytest.approx(20 * 2**0.5)
    # From 40 and 50 evaluations; without more loss, 40 and 20; with 40 %, both 20.
    assert (front.x[0], front.x[1], front.x[-1]) == (45.0, 30.0, 20.0)
    assert (front.x_band[1], front.x_band[-1]) == (pytest.approx(10 * 2**0.5), 0.0)
    assert (front.y[0], front.y[-1]) == (pytest.approx(0.0), pytest.approx(40.0))


@pytest.mark.parametrize(
    ("others", "answer"),
    [
        ([[1.1, 1.2], [1.3, 1.3]], True),
        # As good.
        ([[1.1, 1.2], [1.01, 1.3]], None),
        ([[1.1, 1.2], [0.9, 0.95]], False),
        # Seeds differ.
        ([[0.9, 1.2]], None),
        ([], None),
    ],
)
def test_the_lowest_is_so_by_a_margin(others, answer):
    assert is_lowest(others, margin=0.02) is answer


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([0.1, 0.2, 0.3], True),
        ([0.6, 0.7], False),
        ([0.4, 0.6], None),
        ([0.1], None),
        ([], None),
        ([0.1, math.nan], None),
    ],
)
def test_a_claim_is_decided_if_seeds_agree(values, answer):
    assert seeds_agree(values, at_most=0.5) is answer


def test_a_missing_answer_matters_only_if_the_others_do_not_decide():
    assert all_of(True, None, False) is False
    assert all_of(True, None) is None
    assert all_of(True, True) is True


def test_spread_of_what_is_no_number():
    assert spread([math.nan, 1.0]) == "nan"
    assert spread([1.0]) == "1"


def test_mean_has_the_decimals_of_its_spread():
    assert spread([2.395, 2.403]) == "2.3990 ± 0.0057"
    assert spread([120.0, 160.0]) == "140 ± 28"


def test_rank_correlation_with_ties():
    numbers = np.random.RandomState(0)
    a = numbers.randint(0, 10, 50).astype(float).tolist()
    b = [x + y for x, y in zip(a, numbers.randint(0, 10, 50).tolist(), strict=True)]
    assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert np.isnan(rank_correlation([1.0, 1.0], [1.0, 2.0]))


def test_sweep_has_each_run_once():
    all_jobs = jobs("laptop", range(3))
    assert len({job.identity for job in all_jobs}) == len(all_jobs) == 3 * (1 + 4 * 8)
    # Figures that need a part of it share its runs.
    part = jobs("laptop", range(3), orders=(3,))
    assert {job.identity for job in part} <= {job.identity for job in all_jobs}
    assert weight_of(4, 3e-2) == 3e-4


def result(name, weight, state, seed, loss=1.0, unsolved=0):
    regularizer = {"name": name, "weight": weight}
    return {
        "state": state,
        "config": {"regularizer": regularizer, "seed": seed},
        "row": {"train_loss": loss, "test_loss": float(seed)},
        "evaluations": {"tight": {"test_num_failed": unsolved}},
    }


def test_arms_leave_out_what_failed():
    results = [
        result("r3", 0.1, "finished", 0),
        result("none", 0.0, "finished", 0),
        result("r3", 0.1, "failed", 1),
        result("r3", 0.1, "finished", 3, loss=math.nan),
        result("r3", 0.1, "finished", 4, unsolved=1),
        result("r3", 0.1, "finished", 2),
    ]
    arms = arms_of(results)
    assert [(arm.order, arm.weight) for arm in arms] == [(0, 0), (3, 0.1)]
    assert arms[1].values("test_loss") == {0: 0.0, 2: 2.0}
    assert [arm.label for arm in arms] == ["unregularized", "R_3, weight 0.1"]
    with pytest.raises(MissingRuns, match="All unregularized runs failed"):
        arms_of([x for x in results if x["config"]["regularizer"]["name"] != "none"])
    with pytest.raises(MissingRuns, match="1 of at least 2 arms"):
        arms_of(results[1:2])


def test_growth_is_told_by_what_fits_it():
    orders = [2, 3, 4, 5, 6]
    doubling, square = (
        fit_errors(orders, [2.0**k for k in orders]),
        fit_errors(orders, [3.0 * k**2 for k in orders]),
    )
    assert doubling["exponential"] < 1e-12 < doubling["power"]
    assert square["power"] < 1e-12 < square["exponential"]
