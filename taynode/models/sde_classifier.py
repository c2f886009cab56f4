"""Classification by a neural stochastic differential equation (SDE)."""

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from .sde import DiagonalNoise, NeuralSDE
from .solve import Solve
from .vector_fields import AutonomousMLP, Dense, glorot_dense


class NeuralSDEClassifier(eqx.Module):
    """A linear map of flattened inputs to a state, a neural SDE, and a linear map to logits.

    The drift is a perceptron with one hidden layer and a tanh, and the diagonal diffusion is
    linear. Neither depends on time.

    The model of Pal, Ma, Shah and Rackauckas (ICML 2021) for MNIST is
    `NeuralSDEClassifier(784, 10, key=key)`. Theirs is an Ito equation, and this one is that of
    Stratonovich, whose solvers have error estimates in diffrax. A drift can make up for the
    difference.

    **Arguments:**

    - `in_size`: the size of a flattened input.
    - `num_classes`: the number of classes.
    - `size`: the size of the state.
    - `width`: the size of the hidden layer of the drift.
    - `tol`: the resolution of the Brownian path in time. Steps should be larger.
    - `key`: a random key for the weights.
    """

    into: Dense
    sde: NeuralSDE
    head: Dense

    def __init__(
        self,
        in_size: int,
        num_classes: int,
        *,
        size: int = 32,
        width: int = 64,
        tol: float = 2.0**-12,
        key: PRNGKeyArray,
    ):
        into_key, drift_key, noise_key, head_key = jr.split(key, 4)
        layers = {"first": None, "dense": glorot_dense}
        drift = AutonomousMLP((size, width, size), **layers, key=drift_key)
        noise = AutonomousMLP((size, size), **layers, key=noise_key)
        self.into = glorot_dense(in_size, size, key=into_key)
        self.sde = NeuralSDE(
            size, width, drift=drift, diffusion=DiagonalNoise(noise, None), tol=tol, key=key
        )
        self.head = glorot_dense(size, num_classes, key=head_key)

    def __call__(
        self,
        x: Float[Array, "num ..."],
        solve: Solve | None = None,
        *,
        num_draws: int = 1,
        key: PRNGKeyArray,
    ) -> tuple[Float[Array, "num classes"], dfx.Solution]:
        """Compute logits of a batch, in the mean over paths, and the solution.

        All paths are solved jointly.

        **Arguments:**

        - `x`: the inputs, of any shape.
        - `solve`: the solver and its settings; by default as for `NeuralSDE`.
        - `num_draws`: the number of paths of each input.
        - `key`: a random key for the Brownian paths and for the penalty.
        """
        path_key, key = jr.split(key)
        y0 = jnp.repeat(self.initial_state(x), num_draws, axis=0)
        end = jnp.ones(1, y0.dtype)
        ys, solution = self.sde(y0, end, solve, path_key=path_key, key=key)
        logits = self.head(ys[:, -1])
        return jnp.mean(logits.reshape(len(x), num_draws, -1), axis=1), solution

    def initial_state(self, x: Float[Array, "num ..."]) -> Float[Array, "num size"]:
        """The states of the inputs at time 0."""
        return self.into(x.reshape(len(x), -1))
