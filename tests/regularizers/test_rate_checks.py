"""What a regularizer of one's own returns is checked before anything is solved."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import taynode as tn


class Returns(tn.AbstractRegularizer):
    """Returns some function of the slope."""

    result: object = eqx.field(static=True)

    def rate(self, vector_field, t, y, args, state):
        return self.result(vector_field(t, y, args))


def solve(result, quadrature, y0):
    return tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: jax.tree.map(jnp.negative, y)),
        dfx.Euler(),
        0.0,
        1.0,
        0.5,
        y0,
        regularizer={"own": Returns(result), "other": tn.KineticEnergy()},
        quadrature=quadrature,
        key=jax.random.key(0),
    )


STATE = jnp.ones((3, 2))
PAIR = STATE, jnp.ones(3)
SHAPES = r"`Returns\.rate` must return `\(slope, rate\)`.*f64\[3,2\].*; got a slope .* and a rate"
WRONG = {
    # BUG, fixed: `Augmented` then solved another equation without a word.
    "swapped": (STATE, lambda f: (jnp.sum(f), f), SHAPES + ".*seem to be swapped"),
    "a slope of another shape": (STATE, lambda f: (f[0], jnp.sum(f)), SHAPES),
    "a slope that would broadcast": (STATE, lambda f: (f[:, :1], jnp.sum(f)), SHAPES),
    "a slope of another structure": (PAIR, lambda f: (list(f), 1.0), SHAPES),
    "no slope": (STATE, lambda f: (None, jnp.sum(f)), SHAPES),
    "no pair": (STATE, lambda f: jnp.sum(f), "must return a pair of the slope .* got f64"),
    "a triple": (STATE, lambda f: (f, 1.0, 2.0), "must return a pair of the slope"),
    "no rate": (STATE, lambda f: (f, None), "the rate is a number.*got a rate None"),
    "a rate of words": (STATE, lambda f: (f, "much"), "the rate is a number.*got a rate 'much'"),
}
QUADRATURES = [tn.Augmented(), tn.Sampled(), tn.Sampled(batch_axis=0), tn.Backward()]


@pytest.mark.parametrize("case", WRONG)
def test_wrong_results_of_rate_are_refused_by_every_quadrature(case):
    y0, result, message = WRONG[case]
    for quadrature in QUADRATURES:
        # With a time of its own for each row, a state has one row.
        pattern = message.replace("3,2", "1,2") if quadrature == QUADRATURES[2] else message
        with pytest.raises((TypeError, ValueError), match=pattern):
            solve(result, quadrature, y0)


def test_calling_diffrax_oneself_is_checked_too():
    term = tn.regularized(dfx.ODETerm(lambda t, y, args: -y), Returns(lambda f: (jnp.sum(f), f)))
    with pytest.raises(ValueError, match="seem to be swapped"):
        term.vf(0.0, (STATE, 0.0), None)


def test_rates_may_be_pytrees_of_numbers():
    sol = solve(lambda f: (f, {"a": 2, "b": jnp.ones(2)}), tn.Augmented(), STATE)
    assert sol.stats["penalty"]["own"]["a"] == pytest.approx(2.0)
    assert sol.stats["penalty"]["own"]["b"].shape == (2,)
