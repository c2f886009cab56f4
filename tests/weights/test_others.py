"""Weights that follow a loss, a schedule, or nothing."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from taynode.weights import as_weight, Budget, Constant, LossBudget, Scheduled

from .plants import NEED, Plant, train


def test_as_cheap_as_the_loss_allows():
    # The loss at the end of the plant's training is 1, and 1.2 where the evaluations are least.
    weight = LossBudget(1.0, rtol=0.05)
    state, (nfe, _, loss) = train(weight, Plant(), 3000)
    assert np.mean(loss[-500:]) == pytest.approx(1.05, abs=0.02)
    assert np.mean(nfe[-500:]) < 0.85 * NEED
    assert weight.status(state).name == "holding"


def test_a_loss_is_enough():
    unmeasured = lambda step, nfe, loss: (jnp.full_like(nfe, jnp.nan), loss)
    # The weight has to rise by more than three decades.
    _, (nfe, weights, loss) = train(LossBudget(1.0, rtol=0.1), Plant(), 3000, spoil=unmeasured)
    assert np.mean(loss[-500:]) == pytest.approx(1.1, abs=0.02)
    assert np.mean(nfe[-500:]) < 0.75 * NEED
    assert weights[-1] > 1e3 * weights[weights > 0][0]


def test_a_loss_that_cannot_be_reached_leaves_the_weight_at_zero():
    weight = LossBudget(0.5)
    state, (_, weights, _) = train(weight, Plant(), 600)
    assert not np.any(weights)
    assert weight.status(state).name == "inactive"


def test_the_reference_may_be_the_course_of_another_run():
    course = lambda step: 1 + 3 * jnp.exp(-step / 150)
    state, (_, weights, loss) = train(LossBudget(course, rtol=0.05), Plant(), 3000)
    assert np.any(np.asarray(weights[:300]) > 0)
    assert np.mean(loss[-500:]) == pytest.approx(1.05, abs=0.02)
    del state


@pytest.mark.parametrize("tolerances", [{"rtol": 0.0}, {"rtol": -0.1}, {"atol": -1.0}])
def test_something_must_be_allowed(tolerances):
    with pytest.raises(ValueError, match="`rtol` and `atol` must not be negative"):
        LossBudget(1.0, **tolerances)


def test_numbers_and_schedules_are_weights():
    constant = as_weight(0.1)
    assert isinstance(constant, Constant)
    assert constant(constant.update(constant.init(), nfe=3)) == 0.1
    scheduled = as_weight(optax.linear_schedule(0.0, 1.0, 10))
    assert isinstance(scheduled, Scheduled)
    state = scheduled.init()
    for _ in range(5):
        state = scheduled.update(state, loss=1.0)
    assert scheduled(state) == pytest.approx(0.5)
    assert as_weight(scheduled) is scheduled
    assert {w.status(w.init()).name for w in (constant, scheduled)} == {"fixed"}


def test_a_reference_of_zero_needs_an_absolute_tolerance():
    with pytest.raises(ValueError, match="pass `atol`"):
        LossBudget(0.0)
    assert LossBudget(0.0, atol=0.1).init() is not None


@pytest.mark.parametrize("given", [{"reference": float("nan")}, {"rtol": float("nan")}])
def test_what_cannot_be_compared_with_a_loss_is_refused(given):
    with pytest.raises(ValueError, match=f"`{next(iter(given))}` must be a finite number"):
        LossBudget(**{"reference": 1.0, **given})


def test_what_is_no_weight_is_refused():
    with pytest.raises(TypeError, match=r"Did you mean `Budget\(...\)`"):
        as_weight(Budget)
    with pytest.raises(TypeError, match="`weight` must be a number"):
        as_weight("0.1")
    for number in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="at least 0"):
            as_weight(number)
