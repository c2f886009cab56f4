"""Methods at equal evaluations."""

import dataclasses

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.rival_claims import Compared
from taynode.lab.paper.rivals import OTHERS, PENALTIES

from .synthetic import result_of


def test_every_row_has_its_own_settings():
    study = find_study("rivals-physionet")
    jobs = study.jobs("laptop", [0])
    assert len(jobs) == len(set(jobs)) == 1 + 2 * len(PENALTIES) + len(OTHERS)
    keys = {study.row_key(job.config) for job in jobs}
    assert len(keys) == len(jobs)
    # All other settings are equal.
    plain = jobs[0].config
    for job in jobs:
        config = dataclasses.replace(
            job.config,
            regularizer=plain.regularizer,
            steer=0.0,
            spectral_norm=None,
            training=plain.training,
            optimizer=plain.optimizer,
        )
        assert config == plain


def result_with(job, nfe, loss):
    result = result_of(job)
    result["row"] |= {"test_nfe": nfe, "test_loss": loss}
    return result


def compared(points):
    """The numbers of a study whose fronts go through given points, (evaluations, loss) by row."""
    study = find_study("rivals-digits")
    jobs = dict(zip(study.rivals, study.jobs("laptop", [0]), strict=True))
    results = [result_with(jobs[row], *point) for row, point in points.items()]
    return Compared(study.numbers(results, "laptop"), None, 100.0)


UNREGULARIZED = {"unregularized": (120.0, 1.0)}


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        # Between the budgets.
        ({"R_2, budget 0.75": (80.0, 1.1), "R_2, budget 0.5": (45.0, 1.8)}, 1.2),
        # Before the first: on the line to unregularized models.
        ({"R_2, budget 0.75": (70.0, 1.1), "R_2, budget 0.5": (45.0, 1.8)}, 1.09),
        # A little beyond the last.
        ({"R_2, budget 0.75": (80.0, 1.1)}, 1.1125),
        # Far beyond it.
        ({"R_2, budget 0.75": (90.0, 1.1)}, None),
    ],
)
def test_losses_at_equal_evaluations_are_interpolated(at, expected):
    losses = compared(UNREGULARIZED | at).losses_at("R_2", 0.75)
    assert losses.get(0) == (expected if expected is None else pytest.approx(expected))


def test_a_method_with_less_loss_is_found():
    study = find_study("rivals-digits")
    seeds = [0, 1, 2]
    jobs = study.jobs("laptop", seeds)
    results = []
    for job in jobs:
        budget, name = job.config.regularizer.budget, job.config.regularizer.name
        cost = {"r3": 0.1, "r2": 0.05, "curvature": 0.3}.get(name, 0.1)
        nfe = 118.0 if budget is None else budget
        loss = 1.0 + 0.01 * job.config.seed + (0 if budget is None else cost * 118 / budget)
        results.append(result_with(job, nfe, loss))
    claims = {
        c.statement.partition(" costs")[0]: c
        for c in study.claims(study.numbers(results, "laptop"))
    }
    assert claims["R_2"].verdict == "holds"
    assert claims["curvature"].verdict == "does not hold"
    assert "-0.06" in claims["R_2"].measured
