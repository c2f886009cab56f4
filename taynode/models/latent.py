"""Latent ODEs: generative models of irregular time series."""

import math
from collections.abc import Callable
from typing import NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, Real

from .._types import RealScalarLike, VectorField
from .recognition import Mask, RecurrentEncoder, Series, Times
from .solve import Solve
from .vector_fields import AutonomousMLP, Dense, paper_dense, with_zeros


Encoder = Callable[[Times, Series, Mask], tuple[Array, Array]]
Draws = Float[Array, "draws series latent"]
Latents = Float[Array, "series latent"]
PerDraw = Float[Array, "draws series"]
PerSeries = Float[Array, " series"]


class Reconstruction(NamedTuple):
    """The predictions of a latent ODE for some series.

    - `predicted`: the means of the observations.
    - `z0`: draws of the initial states, `mean + std * noise`.
    - `noise`: the standard normal noise of these draws.
    - `mean`, `std`: the mean and the standard deviation of the initial states.
    - `solution`: the solution of the latent ODE.
    """

    predicted: Float[Array, "draws series times channels"]
    z0: Draws
    noise: Draws
    mean: Latents
    std: Latents
    solution: dfx.Solution


class LatentODE(eqx.Module):
    """A latent state that moves by an ODE, with partial and noisy observations at any times.

    The paper's model for PhysioNet is `LatentODE(37, key=key)`: 20 latent dimensions, a recurrent
    encoder of 40 + 40 states, dynamics of five layers, a linear decoder: 48,147 parameters.

    **Arguments:**

    - `num_channels`: the number of channels of an observation.
    - `latent_size`: the size of the state.
    - `width`, `depth`: the size and the number of the hidden layers of the vector field.
    - `noise_std`: the standard deviation of observations, in units of the data.
    - `encoder`: a function like `RecurrentEncoder`, instead of the default.
    - `vector_field`: a vector field instead of the default, an `AutonomousMLP`.
    - `head`: a function of the means of initial states, for `classify`.
    - `augment`: the number of zeros that are appended to initial states. The vector field and the
        decoder see them, too; the encoder and the prior do not.
    - `key`: a random key for the weights.
    """

    encoder: Encoder
    vector_field: VectorField
    decoder: Dense
    head: Callable[[Array], Array] | None
    noise_std: float = eqx.field(static=True)
    augment: int = eqx.field(static=True)

    def __init__(
        self,
        num_channels: int,
        latent_size: int = 20,
        *,
        width: int = 50,
        depth: int = 4,
        noise_std: float = 0.01,
        encoder: Encoder | None = None,
        vector_field: VectorField | None = None,
        head: Callable[[Array], Array] | None = None,
        augment: int = 0,
        key: PRNGKeyArray,
    ):
        keys = jr.split(key, 3)
        self.encoder = encoder or RecurrentEncoder(num_channels, latent_size, key=keys[0])
        size = latent_size + augment
        sizes = (size, *[width] * depth, size)
        self.vector_field = vector_field or AutonomousMLP(sizes, key=keys[1])
        self.decoder = paper_dense(size, num_channels, key=keys[2])
        self.head, self.noise_std, self.augment = head, noise_std, augment

    def __call__(
        self,
        times: Times,
        values: Series,
        mask: Mask,
        solve: Solve | None = None,
        *,
        num_draws: int = 1,
        at: Real[ArrayLike, " at"] | None = None,
        key: PRNGKeyArray,
    ) -> Reconstruction:
        """Encode some series, and predict them from draws of their initial states.

        All draws of all series are solved jointly, in one solve through all times.

        **Arguments:**

        - `times`: the times of the observations, between 0 and 1 and in order. Ties are allowed.
        - `values`: the observations. Masked values may be anything.
        - `mask`: which values are observed.
        - `solve`: the solver and its settings; by default Dopri5 with tolerances of 1e-5.
        - `num_draws`: the number of draws of each initial state.
        - `at`: the times of the predictions, if they are not `times`.
        - `key`: a random key for the draws and the penalty.
        """
        noise_key, key = jr.split(key)
        mean, std = self.encoder(times, values, mask)
        noise = jr.normal(noise_key, (num_draws, *mean.shape), mean.dtype)
        z0 = mean + std * noise
        states, solution = self.paths(z0, times if at is None else at, solve, key=key)
        return Reconstruction(self.decoder(states), z0, noise, mean, std, solution)

    def paths(
        self,
        z0: Float[Array, "*batch latent"],
        times: Real[ArrayLike, " times"],
        solve: Solve | None = None,
        *,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "*batch times size"], dfx.Solution]:
        """Compute the states at some times, with the appended zeros, and the solution.

        The solve is from time 0 to time 1, or to the last of the times if that is later.
        """
        times = jnp.asarray(times, z0.dtype)
        y0 = self.initial_state(z0)
        # One row for each draw of each series, as for any other batch.
        solution = (solve or Solve())(
            self.vector_field,
            y0.reshape(-1, y0.shape[-1]),
            t0=0.0,
            t1=jnp.maximum(times[-1], 1.0),
            saveat=dfx.SaveAt(ts=times),
            key=key,
        )
        states = jnp.asarray(solution.ys).reshape(len(times), *y0.shape)
        return jnp.moveaxis(states, 0, -2), solution

    def initial_state(self, z0: Float[Array, "*batch latent"]) -> Float[Array, "*batch size"]:
        """Latent states, with the zeros."""
        return with_zeros(z0, self.augment)

    def classify(self, mean: Float[Array, "*batch latent"]) -> Float[Array, "*batch logits"]:
        """Apply the head to the means of initial states."""
        if self.head is None:
            raise ValueError("This model has no `head`; pass one to `LatentODE`.")
        return self.head(mean)

    def log_likelihood(
        self, predicted: Float[Array, "draws series times channels"], values: Series, mask: Mask
    ) -> PerDraw:
        """Compute the log-likelihood of the observed values of each series."""
        error = jnp.where(mask, predicted - values, 0.0) / self.noise_std
        constant = math.log(self.noise_std) + 0.5 * math.log(2 * math.pi)
        terms = -0.5 * error**2 - constant
        return jnp.sum(jnp.where(mask, terms, 0.0), axis=(-2, -1))


def divergence_from_prior(mean: Latents, std: Latents) -> PerSeries:
    """Compute the Kullback-Leibler divergence of a normal distribution from the standard one."""
    return jnp.sum(0.5 * (mean**2 + std**2 - 1) - jnp.log(std), axis=-1)


def evidence_bound(
    log_likelihood: PerDraw, mean: Latents, std: Latents, *, kl_weight: RealScalarLike = 1.0
) -> PerSeries:
    """Compute the ELBO of each series from the log-likelihoods of its draws."""
    return jnp.mean(log_likelihood, axis=0) - kl_weight * divergence_from_prior(mean, std)


def importance_bound(
    log_likelihood: PerDraw,
    z0: Draws,
    noise: Draws,
    std: Latents,
    *,
    kl_weight: RealScalarLike = 1.0,
) -> PerSeries:
    """Compute the importance-weighted bound from draws `z0 = mean + std * noise`.

    It is tighter than the ELBO. For a single draw, its mean is the ELBO.
    """
    prior = -0.5 * jnp.sum(z0**2, axis=-1)
    posterior = jnp.sum(-0.5 * noise**2 - jnp.log(std), axis=-1)
    weights = log_likelihood + kl_weight * (prior - posterior)
    return jax.nn.logsumexp(weights, axis=0) - math.log(len(weights))
