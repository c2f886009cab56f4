"""Latent ODEs: generative models of irregular time series."""

import math
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from .._types import Args, RealScalarLike, VectorField
from .recognition import RecurrentEncoder
from .solve import Solve
from .vector_fields import Dense, paper_dense


class AutonomousMLP(eqx.Module):
    """A perceptron of the state alone, with a tanh before each of its layers.

    **Arguments:**

    - `sizes`: of all layers, the state's size first and last.
    - `key`: a random key for the weights.
    """

    layers: list[Dense]

    def __init__(self, sizes: tuple[int, ...], *, key: PRNGKeyArray):
        keys = jr.split(key, len(sizes) - 1)
        self.layers = [
            paper_dense(m, n, key=k) for m, n, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        ]

    def __call__(self, t: RealScalarLike, y: Any, args: Args = None) -> Any:
        """The slope of a state, or of a batch of them along leading axes."""
        del t, args
        for layer in self.layers:
            y = layer(jnp.tanh(y))
        return y


class Reconstruction(NamedTuple):
    """What a latent ODE makes of some series.

    - `predicted`: means of the observations, `(num_draws, num_series, num_times, num_channels)`.
    - `z0`: the initial states that were drawn, `(num_draws, num_series, latent_size)`.
    - `noise`: of the same shape, standard normal, from which they were drawn.
    - `mean`, `std`: of the distribution of initial states.
    - `solution`: of the solve.
    """

    predicted: Any
    z0: Any
    noise: Any
    mean: Any
    std: Any
    solution: dfx.Solution


class LatentODE(eqx.Module):
    """A latent state moves by an ODE and is observed, at any times and in part, with noise.

    The paper's model for PhysioNet is `LatentODE(37, key=key)`: 20 latent dimensions, a recurrent
    encoder of 40 + 40 states, dynamics of five layers, a linear decoder: 48,147 parameters.

    **Arguments:**

    - `num_channels`: of an observation.
    - `latent_size`: of the state.
    - `width`, `depth`: of the vector field's hidden layers, and how many there are.
    - `noise_std`: of the observations, on the scale of the data.
    - `encoder`, `vector_field`: others than those.
    - `head`: tells something of a whole series from the mean of its initial state, if given; see
        `classify`.
    - `key`: a random key for the weights.
    """

    encoder: Any
    vector_field: VectorField
    decoder: Dense
    head: Any
    noise_std: float = eqx.field(static=True)

    def __init__(
        self,
        num_channels: int,
        latent_size: int = 20,
        *,
        width: int = 50,
        depth: int = 4,
        noise_std: float = 0.01,
        encoder: Any = None,
        vector_field: VectorField | None = None,
        head: Any = None,
        key: PRNGKeyArray,
    ):
        keys = jr.split(key, 3)
        self.encoder = encoder or RecurrentEncoder(num_channels, latent_size, key=keys[0])
        sizes = (latent_size, *[width] * depth, latent_size)
        self.vector_field = vector_field or AutonomousMLP(sizes, key=keys[1])
        self.decoder = paper_dense(latent_size, num_channels, key=keys[2])
        self.head, self.noise_std = head, noise_std

    def __call__(
        self,
        times: Any,
        values: Any,
        mask: Any,
        solve: Solve | None = None,
        *,
        num_draws: int = 1,
        at: Any = None,
        key: PRNGKeyArray,
    ) -> Reconstruction:
        """Encode some series, and predict them from draws of their initial states.

        All draws of all series are solved jointly, in one solve through all times.

        **Arguments:**

        - `times`: of the observations, in order, ties allowed, `(num_times,)`, between 0 and 1.
        - `values`: `(num_series, num_times, num_channels)`; anything where they are masked.
        - `mask`: of the same shape, what is observed.
        - `solve`: how to solve; with Dopri5 at a tolerance of 1e-5 by default.
        - `num_draws`: of each initial state.
        - `at`: predict at these times instead, such as later ones.
        - `key`: for the draws, and for regularizers that draw something.
        """
        noise_key, key = jr.split(key)
        mean, std = self.encoder(times, values, mask)
        noise = jr.normal(noise_key, (num_draws, *mean.shape), mean.dtype)
        z0 = mean + std * noise
        states, solution = self.paths(z0, times if at is None else at, solve, key=key)
        return Reconstruction(self.decoder(states), z0, noise, mean, std, solution)

    def paths(
        self, z0: Any, times: Any, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[Any, dfx.Solution]:
        """Latent states at some times, as one but last axis, and the solution.

        From time 0 to time 1, or to the last of the times if that is later.
        """
        times = jnp.asarray(times, z0.dtype)
        # One row for each draw of each series, as for any other batch.
        solution = (solve or Solve())(
            self.vector_field,
            z0.reshape(-1, z0.shape[-1]),
            t0=0.0,
            t1=jnp.maximum(times[-1], 1.0),
            saveat=dfx.SaveAt(ts=times),
            key=key,
        )
        states = jnp.asarray(solution.ys).reshape(len(times), *z0.shape)
        return jnp.moveaxis(states, 0, -2), solution

    def classify(self, mean: Any) -> Any:
        """What the head says of series whose initial states have these means, as logits."""
        if self.head is None:
            raise ValueError("This model has no `head`; pass one to `LatentODE`.")
        return self.head(mean)

    def log_likelihood(self, predicted: Any, values: Any, mask: Any) -> Any:
        """Of each series: the sum over what is observed of it."""
        error = jnp.where(mask, predicted - values, 0.0) / self.noise_std
        constant = math.log(self.noise_std) + 0.5 * math.log(2 * math.pi)
        terms = -0.5 * error**2 - constant
        return jnp.sum(jnp.where(mask, terms, 0.0), axis=(-2, -1))


def divergence_from_prior(mean: Any, std: Any) -> Any:
    """Kullback and Leibler's, of a normal distribution from the standard one, summed."""
    return jnp.sum(0.5 * (mean**2 + std**2 - 1) - jnp.log(std), axis=-1)


def evidence_bound(log_likelihood: Any, mean: Any, std: Any, *, kl_weight: Any = 1.0) -> Any:
    """The ELBO of each series, from the log-likelihoods of draws along the first axis."""
    return jnp.mean(log_likelihood, axis=0) - kl_weight * divergence_from_prior(mean, std)


def importance_bound(
    log_likelihood: Any, z0: Any, noise: Any, std: Any, *, kl_weight: Any = 1.0
) -> Any:
    """The tighter bound of importance-weighted draws `z0 = mean + std * noise`.

    For a single draw, its mean is the ELBO.
    """
    prior = -0.5 * jnp.sum(z0**2, axis=-1)
    posterior = jnp.sum(-0.5 * noise**2 - jnp.log(std), axis=-1)
    weights = log_likelihood + kl_weight * (prior - posterior)
    return jax.nn.logsumexp(weights, axis=0) - math.log(len(weights))
