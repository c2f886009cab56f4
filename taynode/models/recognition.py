"""Recognition networks: from irregular observations to a distribution of initial states."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, Real

from .vector_fields import Dense


MIN_STD = 1e-6
Vectors = Float[Array, "*batch size"]
Series = Float[Array | np.ndarray, "series times channels"]
Mask = Bool[Array | np.ndarray, "series times channels"]
Times = Real[Array | np.ndarray, " times"]


def _normal_dense(in_size: int, out_size: int, *, key: PRNGKeyArray) -> Dense:
    """A layer as in the paper's code: weights of standard deviation 0.1, and zero biases."""
    return Dense(0.1 * jr.normal(key, (in_size, out_size)), jnp.zeros(out_size))


class TwoLayers(eqx.Module):
    """A linear map, tanh, and another linear map."""

    first: Dense
    second: Dense

    def __init__(self, in_size: int, width: int, out_size: int, *, key: PRNGKeyArray):
        first, second = jr.split(key)
        self.first = _normal_dense(in_size, width, key=first)
        self.second = _normal_dense(width, out_size, key=second)

    def __call__(self, x: Float[Array, "*batch in"]) -> Float[Array, "*batch out"]:
        """Map the last axis of `x`."""
        return self.second(jnp.tanh(self.first(x)))


class GatedCell(eqx.Module):
    """A gated recurrent cell whose state is a mean and a standard deviation.

    **Arguments:**

    - `in_size`: the size of an input.
    - `state_size`: the size of the mean, and of the standard deviation.
    - `width`: the size of the hidden layers.
    - `key`: a random key for the weights.
    """

    update: TwoLayers
    reset: TwoLayers
    candidate: TwoLayers

    def __init__(self, in_size: int, state_size: int, width: int, *, key: PRNGKeyArray):
        keys = jr.split(key, 3)
        size = in_size + 2 * state_size
        self.update, self.reset = (
            TwoLayers(size, width, state_size, key=k) for k in (keys[0], keys[1])
        )
        self.candidate = TwoLayers(size, width, 2 * state_size, key=keys[2])

    def prepared(
        self,
    ) -> tuple[Callable[[Array], Array], Callable[[Array, Array, Array], tuple[Array, Array]]]:
        """Split the cell into two functions: `project(x)` and `advance(projected, mean, std)`.

        The first is the part of all first layers that reads the input. Applied to all inputs of a
        series at once, it is much cheaper than input by input. The second computes the next state.
        Weights that are used together are concatenated here, once.
        """
        gates, layers = (self.update, self.reset), (self.update, self.reset, self.candidate)
        side_by_side = lambda weights: jnp.concatenate(weights, axis=-1)
        width = len(self.update.first.bias)
        in_size = len(self.update.first.weight) - self.candidate.second.bias.size
        of_inputs = side_by_side([layer.first.weight[:in_size] for layer in layers])
        biases = side_by_side([layer.first.bias for layer in layers])
        of_gates = side_by_side([layer.first.weight[in_size:] for layer in gates])
        of_candidate = self.candidate.first.weight[in_size:]

        def project(x: Array) -> Array:
            return x @ of_inputs + biases

        def advance(projected: Array, mean: Vectors, std: Vectors) -> tuple[Vectors, Vectors]:
            for_gates, for_candidate = jnp.split(projected, [2 * width], axis=-1)
            hidden = jnp.tanh(for_gates + side_by_side([mean, std]) @ of_gates)
            halves = jnp.split(hidden, 2, axis=-1)
            update, reset = (
                jax.nn.sigmoid(gate.second(half)) for gate, half in zip(gates, halves, strict=True)
            )
            partly = side_by_side([reset * mean, reset * std])
            hidden = jnp.tanh(for_candidate + partly @ of_candidate)
            new_mean, new_std = jnp.split(self.candidate.second(hidden), 2, axis=-1)
            mix = lambda new, old: (1 - update) * new + update * old
            return mix(new_mean, mean), mix(jnp.abs(new_std), std)

        return project, advance


class RecurrentEncoder(eqx.Module):
    """Reads a series backwards in time, and returns the distribution of the state at time 0.

    Masked values are never read. Times without observations change nothing, and neither does
    padding. Observations at the same time are read as one. The inputs at each observation include
    the time to the next one. A last input is the time from 0 to the first observation, if that is
    later.

    **Arguments:**

    - `num_channels`: the number of channels of an observation.
    - `latent_size`: the size of the state at time 0.
    - `state_size`, `width`: as for `GatedCell`.
    - `moves`: whether the state of the cell moves between observations by an ODE of its own, as in
        an ODE-RNN. It takes one midpoint step from one to the next.
    - `key`: a random key for the weights.
    """

    cell: GatedCell
    head: TwoLayers
    drift: TwoLayers | None
    state_size: int = eqx.field(static=True)

    def __init__(
        self,
        num_channels: int,
        latent_size: int,
        *,
        state_size: int = 40,
        width: int = 50,
        moves: bool = False,
        key: PRNGKeyArray,
    ):
        cell_key, head_key, drift_key = jr.split(key, 3)
        self.drift = TwoLayers(state_size, width, state_size, key=drift_key) if moves else None
        self.cell = GatedCell(2 * num_channels + 1, state_size, width, key=cell_key)
        self.head = TwoLayers(2 * state_size, width, 2 * latent_size, key=head_key)
        self.state_size = state_size

    def __call__(
        self, times: Times, values: Series, mask: Mask
    ) -> tuple[Float[Array, "series latent"], Float[Array, "series latent"]]:
        """Compute the mean and the standard deviation of the initial state of each series.

        **Arguments:**

        - `times`: the times of the observations, in order. Ties are allowed.
        - `values`: the observations. Masked values may be anything.
        - `mask`: which values are observed.
        """
        values, mask = _merge_ties(times, jnp.where(mask, values, 0.0), mask)
        seen = mask.any(axis=-1)
        observed = mask.astype(values.dtype)
        gaps, lead = (x.astype(values.dtype) for x in _gaps(times, seen))
        project, advance = self.cell.prepared()

        def step(state, x):
            projected, is_seen, gap = x
            new = advance(projected, self._moved(state[0], gap), state[1])
            choose = lambda new, old: jnp.where(is_seen[:, None], new, old)
            return (choose(new[0], state[0]), choose(new[1], state[1])), None

        inputs = jnp.concatenate([values, observed, gaps[..., None]], axis=-1)
        start = jnp.zeros((len(values), self.state_size), values.dtype)
        steps = (jnp.swapaxes(x, 0, 1) for x in (project(inputs), seen, gaps))
        state, _ = jax.lax.scan(step, (start, start), tuple(steps), reverse=True)
        # One more step from the first observation to time 0, with an input that observes nothing.
        nothing = jnp.zeros_like(inputs[:, 0]).at[:, -1].set(lead)
        state, _ = step(state, (project(nothing), lead > 0, lead))
        mean, std = jnp.split(self.head(jnp.concatenate(state, axis=-1)), 2, axis=-1)
        return mean, jnp.abs(std) + MIN_STD

    def _moved(
        self, mean: Float[Array, "series state"], gap: Float[Array, " series"]
    ) -> Float[Array, "series state"]:
        if self.drift is None:
            return mean
        middle = mean + 0.5 * gap[:, None] * self.drift(mean)
        return mean + gap[:, None] * self.drift(middle)


def _merge_ties(times: Times, values: Series, mask: Mask) -> tuple[Array, Array]:
    """Merge the rows of equal times into the first of them, and mask the others.

    A channel that was observed several times has the mean of its values.
    """
    is_same = (times[:, None] == times).astype(values.dtype)
    counts = is_same @ mask.astype(values.dtype)
    merged = (is_same @ values) / jnp.maximum(counts, 1.0)
    is_first = jnp.concatenate([jnp.ones(1, bool), times[1:] > times[:-1]])
    kept = (counts > 0) & is_first[:, None]
    return jnp.where(kept, merged, 0.0), kept


def _gaps(
    times: Times, seen: Bool[Array, "series times"]
) -> tuple[Real[Array, "series times"], Real[Array, " series"]]:
    """Compute the time from each time to the next observation, and from 0 to the first one.

    It is 0 where there is no next observation.
    """
    when = jnp.where(seen, times, jnp.inf)
    # The first observation from each time on.
    coming = jax.lax.cummin(when, axis=1, reverse=True)
    later = jnp.concatenate([coming[:, 1:], jnp.full_like(coming[:, :1], jnp.inf)], axis=1)
    finite = lambda gap: jnp.where(jnp.isfinite(gap), gap, 0.0)
    return finite(later - times), jnp.maximum(finite(coming[:, 0]), 0.0)
