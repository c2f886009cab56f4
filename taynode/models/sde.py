"""Generation of time series by a neural stochastic differential equation (SDE)."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
from jaxtyping import Array, Float, PRNGKeyArray

from .._types import Args, RealScalar, RealScalarLike, VectorField
from .solve import Solve
from .vector_fields import States, TimeMLP


class DiagonalNoise(eqx.Module):
    """A diffusion matrix that is diagonal, with positive entries between 0 and `largest`.

    If `largest` is `None`, entries are what `network` computes, of either sign and without bounds.
    """

    network: VectorField
    largest: float | None = eqx.field(static=True)

    def __call__(self, t: RealScalarLike, y: States, args: Args) -> lx.DiagonalLinearOperator:
        """Compute the matrix as an operator."""
        entries = self.network(t, y, args)
        if self.largest is not None:
            entries = self.largest * jax.nn.sigmoid(entries)
        return lx.DiagonalLinearOperator(entries)


class NeuralSDE(eqx.Module):
    r"""A neural Stratonovich equation $dy = f(t, y)\,dt + g(t, y) \circ dW$ from time 0 to 1.

    By default, drift and diagonal diffusion are perceptrons with time as an input.

    **Arguments:**

    - `size`: the size of the state.
    - `width`: the size of the two hidden layers of the drift, and of the one of the diffusion.
    - `drift`: a vector field instead of the default.
    - `diffusion`: a diagonal diffusion instead of the default.
    - `largest`: a bound for the entries of the default diffusion.
    - `tol`: the resolution of the Brownian path in time. Steps should be larger.
    - `key`: a random key for the weights.
    """

    drift: VectorField
    diffusion: DiagonalNoise
    tol: float = eqx.field(static=True)

    def __init__(
        self,
        size: int,
        width: int,
        *,
        drift: VectorField | None = None,
        diffusion: DiagonalNoise | None = None,
        largest: float = 2.0,
        tol: float = 2.0**-12,
        key: PRNGKeyArray,
    ):
        drift_key, noise_key = jr.split(key)
        if drift is None:
            drift = TimeMLP((size, width, width, size), jax.nn.silu, key=drift_key)
        if diffusion is None:
            noise = TimeMLP((size, width, size), jax.nn.silu, key=noise_key)
            diffusion = DiagonalNoise(noise, largest)
        self.drift, self.diffusion, self.tol = drift, diffusion, tol

    def __call__(
        self,
        y0: Float[Array, "num size"],
        times: Float[Array, " times"],
        solve: Solve | None = None,
        *,
        path_key: PRNGKeyArray,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "num times size"], dfx.Solution]:
        """Draw a path for each initial state, solved jointly, and the solution.

        **Arguments:**

        - `y0`: the initial states.
        - `times`: increasing times between 0 and 1.
        - `solve`: the solver and its settings; by default SPaRK with tolerances of 1e-2.
        - `path_key`: a random key for the Brownian path.
        - `key`: a random key for the penalty.
        """
        terms = self.terms(y0, path_key)
        solution = (solve or Solve(dfx.SPaRK(), dfx.PIDController(rtol=1e-2, atol=1e-2)))(
            terms, y0, saveat=dfx.SaveAt(ts=times), key=key
        )
        return jnp.swapaxes(jnp.asarray(solution.ys), 0, 1), solution

    def terms(self, y0: Float[Array, "*batch size"], path_key: PRNGKeyArray) -> dfx.MultiTerm:
        """The equation with a Brownian path for states like `y0`."""
        path = dfx.VirtualBrownianTree(
            0.0,
            1.0,
            self.tol,
            jax.ShapeDtypeStruct(y0.shape, y0.dtype),
            path_key,
            levy_area=dfx.SpaceTimeLevyArea,
        )
        return dfx.MultiTerm(dfx.ODETerm(self.drift), dfx.ControlTerm(self.diffusion, path))


def energy_score(
    draws: Float[Array, "draws *event"], observed: Float[Array, "num *event"]
) -> RealScalar:
    """How well draws of a distribution fit observations; smaller is better.

    Its expectation is least for the distribution of the observations. Distances are root mean
    squares over elements. Pairs of a draw with itself are left out, so there is no bias.

    Reference: Gneiting and Raftery, Strictly Proper Scoring Rules, JASA 2007.
    """
    axes = tuple(range(1, draws.ndim))
    distance = lambda x, y: jnp.sqrt(jnp.mean((x - y) ** 2, axis=axes))
    to_observed = jax.vmap(lambda y: jnp.mean(distance(draws, y)))(observed)
    first, second = jnp.triu_indices(len(draws), 1)
    return jnp.mean(to_observed) - 0.5 * jnp.mean(distance(draws[first], draws[second]))
