"""Recognition networks: from irregular observations to a distribution of initial states."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from .._types import Key
from .vector_fields import Dense


def _normal_dense(in_size: int, out_size: int, *, key: Key) -> Dense:
    """As in the paper's code: weights of standard deviation 0.1, biases of zero."""
    return Dense(0.1 * jr.normal(key, (in_size, out_size)), jnp.zeros(out_size))


class TwoLayers(eqx.Module):
    """A linear map, tanh, and another linear map."""

    first: Dense
    second: Dense

    def __init__(self, in_size: int, width: int, out_size: int, *, key: Key):
        first, second = jr.split(key)
        self.first = _normal_dense(in_size, width, key=first)
        self.second = _normal_dense(width, out_size, key=second)

    def __call__(self, x: Any) -> Any:
        """The image of the last axis."""
        return self.second(jnp.tanh(self.first(x)))


class GatedCell(eqx.Module):
    """A gated recurrent cell whose state is a mean and a standard deviation.

    **Arguments:**

    - `in_size`: of the input.
    - `state_size`: of the mean, and of the standard deviation.
    - `width`: of the hidden layers.
    - `key`: a random key for the weights.
    """

    update: TwoLayers
    reset: TwoLayers
    candidate: TwoLayers

    def __init__(self, in_size: int, state_size: int, width: int, *, key: Key):
        keys = jr.split(key, 3)
        size = in_size + 2 * state_size
        self.update, self.reset = (
            TwoLayers(size, width, state_size, key=k) for k in (keys[0], keys[1])
        )
        self.candidate = TwoLayers(size, width, 2 * state_size, key=keys[2])

    def __call__(self, x: Any, mean: Any, std: Any) -> tuple[Any, Any]:
        """The next mean and standard deviation."""
        seen = jnp.concatenate([x, mean, std], axis=-1)
        update, reset = jax.nn.sigmoid(self.update(seen)), jax.nn.sigmoid(self.reset(seen))
        partly = jnp.concatenate([x, reset * mean, reset * std], axis=-1)
        new_mean, new_std = jnp.split(self.candidate(partly), 2, axis=-1)
        mix = lambda new, old: (1 - update) * new + update * old
        return mix(new_mean, mean), mix(jnp.abs(new_std), std)


class RecurrentEncoder(eqx.Module):
    """Reads a series backwards in time, and tells the distribution of the state at its beginning.

    What is not observed is never looked at, and times at which nothing is observed change nothing;
    so padding a series changes nothing either.

    **Arguments:**

    - `num_channels`: of an observation.
    - `latent_size`: of the distribution.
    - `state_size`, `width`: of the cell.
    - `moves`: whether the state moves by an ODE of its own from one time to the next, as in an
        ODE-RNN; it takes a midpoint step for that. Then also times without observations matter.
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
        key: Key,
    ):
        cell_key, head_key, drift_key = jr.split(key, 3)
        self.drift = TwoLayers(state_size, width, state_size, key=drift_key) if moves else None
        self.cell = GatedCell(2 * num_channels + 1, state_size, width, key=cell_key)
        self.head = TwoLayers(2 * state_size, width, 2 * latent_size, key=head_key)
        self.state_size = state_size

    def __call__(self, times: Any, values: Any, mask: Any) -> tuple[Any, Any]:
        """The mean and the standard deviation of the initial state of each series.

        **Arguments:**

        - `times`: of the observations, increasing, `(num_times,)`.
        - `values`: `(num_series, num_times, num_channels)`; anything where they are masked.
        - `mask`: of the same shape, what is observed.
        """
        seen = mask.any(axis=-1)
        observed = mask.astype(values.dtype)
        values = jnp.where(mask, values, 0.0)
        gaps = _gaps(times, seen).astype(values.dtype)

        def step(state: tuple[Any, Any], x: Any) -> tuple[tuple[Any, Any], None]:
            inputs, keep, length = x
            old_mean, old_std = state
            if self.drift is not None:
                middle = old_mean + 0.5 * length * self.drift(old_mean)
                old_mean = old_mean + length * self.drift(middle)
            mean, std = self.cell(inputs, old_mean, old_std)
            kept = keep[:, None]
            return (jnp.where(kept, mean, old_mean), jnp.where(kept, std, old_std)), None

        inputs = jnp.concatenate([values, observed, gaps[..., None]], axis=-1)
        start = jnp.zeros((len(values), self.state_size), values.dtype)
        swap = lambda x: jnp.swapaxes(x, 0, 1)
        lengths = jnp.diff(times, append=times[-1:]).astype(values.dtype)
        state, _ = jax.lax.scan(
            step, (start, start), (swap(inputs), swap(seen), lengths), reverse=True
        )
        mean, std = jnp.split(self.head(jnp.concatenate(state, axis=-1)), 2, axis=-1)
        return mean, jnp.abs(std) + MIN_STD


MIN_STD = 1e-6


def _gaps(times: Any, seen: Any) -> Any:
    """From each time to the next one at which a series was observed; 0 if there is none."""

    def step(later: Any, x: Any) -> tuple[Any, Any]:
        time, is_seen = x
        gap = jnp.where(jnp.isfinite(later), later - time, 0.0)
        return jnp.where(is_seen, time, later), gap

    never = jnp.full(len(seen), jnp.inf, times.dtype)
    spread = jnp.broadcast_to(times[:, None], (len(times), len(seen)))
    _, gaps = jax.lax.scan(step, never, (spread, seen.T), reverse=True)
    return gaps.T
