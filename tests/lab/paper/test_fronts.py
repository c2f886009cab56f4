"""Fronts and statistics of many runs, against numbers by hand and an independent library."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from taynode.lab.paper.arms import arms_of, MissingRuns
from taynode.lab.paper.fronts import WeightFront
from taynode.lab.paper.mnist_sweep import jobs, weight_of
from taynode.lab.paper.statistics import rounded, spread
from taynode.lab.paper.taylor_cost import fit_errors
from taynode.ranks import rank_correlation


FRONT = WeightFront(
    weights=[0.0, 0.1, 1.0],
    nfe=[{"0": 40.0, "1": 50.0}, {"0": 30.0, "1": 20.0}, {"0": 20.0, "1": 20.0}],
    loss=[{"0": 1.0, "1": 1.0}, {"0": 1.04, "1": 1.0}, {"0": 1.2, "1": 1.6}],
)


def test_a_weight_is_not_chosen_by_the_seed_that_it_is_reported_on():
    """Of two seeds, each is reported with the weight that is best for the other one."""
    # For seed 1, weight 0.1 costs nothing; for seed 0, it costs 4 %.
    saving = FRONT.within(0.01)
    assert saving.weights == {"0": 0.1, "1": 0.0}
    assert saving.nfe == {"0": 0.75, "1": 1.0}
    assert saving.extra == {"0": pytest.approx(0.04), "1": 0.0}
    assert FRONT.within(0.05).weights == {"0": 0.1, "1": 0.1}
    # Seed 0 alone loses 20 % with the largest weight, seed 1 loses 60 %.
    assert FRONT.within(0.5).weights == {"0": 0.1, "1": 1.0}
    assert FRONT.within(0.05).in_words() == "42 ± 25 % for 2.0 ± 2.8 % (weight 0.1)"


def test_one_seed_has_no_others_to_choose_on():
    front = WeightFront([0.0, 1.0], [{"0": 40.0}, {"0": 20.0}], [{"0": 1.0}, {"0": 1.0}])
    saving = front.within(0.05)
    assert saving.nfe == {}
    assert "no other seeds" in saving.in_words()


def test_savings_are_compared_seed_by_seed():
    same = FRONT.within(0.05).like(FRONT.within(0.05), "difference")
    assert same.values == [0.0, 0.0]
    # One of them saves nothing for a seed.
    assert FRONT.within(0.05).like(FRONT.within(0.01), "difference").values == []


def test_a_run_that_failed_is_not_taken_for_one_of_another_seed():
    nfe = [{"0": 40.0, "1": 50.0, "2": 60.0}, {"1": 25.0, "2": 20.0}]
    loss = [dict.fromkeys("012", 1.0), dict.fromkeys("12", 1.0)]
    front = WeightFront([0.0, 1.0], nfe, loss)
    assert front.within(0.01).nfe == {"1": 0.5, "2": pytest.approx(1 / 3)}
    assert list(front.area()) == ["1", "2"]


def test_losses_may_be_negative():
    nfe = [dict.fromkeys("01", 40.0), dict.fromkeys("01", 20.0)]
    front = WeightFront([0.0, 1.0], nfe, [dict.fromkeys("01", -2.0), dict.fromkeys("01", -1.95)])
    assert set(front.within(0.01).nfe.values()) == {1.0}
    assert set(front.within(0.05).nfe.values()) == {0.5}


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


def test_measurements_are_kept_with_six_digits():
    measured = {"values": [1 / 3, 2, 2e-9 / 3], "name": "x"}
    assert rounded(measured) == {"values": [0.333333, 2, 6.66667e-10], "name": "x"}
