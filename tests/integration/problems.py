"""What the tests of the solve share: small problems, counters, comparisons."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

import taynode as tn


KEY = jax.random.key(7)
TSIT5 = dfx.Tsit5()
Y0 = jnp.array([1.2, 0.0])


class Tally:
    """Counts, in Python, what happens inside a compiled program."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def note(self, t: Any) -> None:
        """To be called from within the program."""
        jax.debug.callback(lambda t: self._times.append(float(t)), t)

    def take(self) -> list[float]:
        """The times noted since the last call of this."""
        jax.effects_barrier()
        times = list(self._times)
        self._times.clear()
        return times


class Counted(tn.AbstractRegularizer):
    """Kinetic energy that notes each evaluation of its rate."""

    tally: Tally = eqx.field(static=True)

    def rate(self, vector_field, t, y, args, state):
        self.tally.note(t)
        slope = vector_field(t, y, args)
        return slope, jnp.mean(slope**2)


def pendulum(t, y, args):
    """Damped, and pushed in time."""
    return jnp.stack([y[1], -4 * jnp.sin(y[0]) - 0.25 * y[1] + jnp.cos(3 * t)])


class Network(eqx.Module):
    """A vector field with parameters, an argument and time; each row of a batch by itself."""

    weight: Any
    bias: Any

    def __call__(self, t, y, args):
        return jnp.tanh(y @ self.weight + self.bias) + args * jnp.sin(3 * t)


def network(dtype: Any = jnp.float64) -> Network:
    weight = jnp.array([[0.3, 5.0], [-7.0, 0.2]], dtype)
    return Network(weight, jnp.array([0.1, -0.2], dtype))


def pid(tol: Any = 1e-4, **options: Any) -> dfx.PIDController:
    return dfx.PIDController(rtol=tol, atol=tol, **options)


def counts(solution: dfx.Solution) -> tuple[Any, Any]:
    """How many steps were accepted, and how many rejected."""
    stats = solution.stats
    return (
        np.asarray(stats["num_accepted_steps"]).tolist(),
        np.asarray(stats["num_rejected_steps"]).tolist(),
    )


def distance(a: Any, b: Any) -> float:
    """The largest difference of two pytrees of arrays, which must have the same structure."""
    assert jtu.tree_structure(a) == jtu.tree_structure(b)
    pairs = zip(jtu.tree_leaves(a), jtu.tree_leaves(b), strict=True)
    differences = [_distance(x, y) for x, y in pairs]
    return max(differences, default=0.0)


def _distance(x: Any, y: Any) -> float:
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    assert x.dtype == y.dtype
    # Output that was never reached is infinite in both.
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return float(np.max(np.where(same, 0, np.abs(np.where(same, 0, x) - np.where(same, 0, y)))))
