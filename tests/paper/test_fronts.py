"""What is made of many runs, against numbers by hand and an independent library."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from taynode.paper.fronts import area_under_front, Front
from taynode.paper.mnist_sweep import arms_of, jobs, weight_of
from taynode.paper.statistics import rank_correlation


FRONT = Front(
    weights=[0.0, 0.1, 1.0], nfe=[[40.0, 50.0], [30.0, 20.0], [20.0, 20.0]],
    loss=[[1.0, 1.0], [1.04, 1.0], [1.2, 1.6]],
)  # fmt: skip


def test_evaluations_saved_for_some_more_loss():
    assert FRONT.at_extra_loss(0.01) == [0.0, pytest.approx(0.6)]
    assert FRONT.at_extra_loss(0.05) == [0.25, pytest.approx(0.6)]
    assert FRONT.at_extra_loss(0.5) == [0.5, pytest.approx(0.6)]


def test_area_under_a_front():
    # Of the 51 bounds from 1 to 1.5, those below 1.04 and 1.2 are 4 and 20.
    assert area_under_front(FRONT) == [
        pytest.approx((4 * 40 + 16 * 30 + 31 * 20) / 51 / 40),
        pytest.approx(0.4),
    ]


def test_rank_correlation_with_ties():
    numbers = np.random.RandomState(0)
    a = numbers.randint(0, 10, 50).tolist()
    b = [x + y for x, y in zip(a, numbers.randint(0, 10, 50).tolist(), strict=True)]
    assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert np.isnan(rank_correlation([1, 1], [1, 2]))


def test_sweep_has_each_run_once():
    all_jobs = jobs("laptop", range(3))
    assert len({job.identity for job in all_jobs}) == len(all_jobs) == 3 * (1 + 4 * 7)
    # Figures that need a part of it share its runs.
    part = jobs("laptop", range(3), orders=(3,))
    assert {job.identity for job in part} <= {job.identity for job in all_jobs}
    assert weight_of(4, 3e-2) == 3e-4


def test_arms_leave_out_what_failed():
    def result(name, weight, state, seed):
        regularizer = {"name": name, "weight": weight}
        return {
            "state": state,
            "config": {"regularizer": regularizer, "seed": seed},
            "row": {"x": float(seed)},
        }

    results = [
        result("r3", 0.1, "finished", 0),
        result("none", 0.0, "finished", 0),
        result("r3", 0.1, "failed", 1),
        result("r3", 0.1, "finished", 2),
    ]
    arms = arms_of(results)
    assert [(arm.order, arm.weight, len(arm.results)) for arm in arms] == [(0, 0, 1), (3, 0.1, 2)]
    assert (arms[1].values("x"), arms[1].mean("x")) == ([0.0, 2.0], 1.0)
