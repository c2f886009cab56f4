"""Classification of time series by a neural controlled differential equation (CDE)."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from .._types import RealScalarLike
from ..quadrature import PerRow
from .solve import Solve
from .vector_fields import Dense, paper_dense


class ControlledField(eqx.Module):
    """The vector field f(y) dX/dt of a batch whose rows have controls X of their own.

    The matrix f(y) is a perceptron with one hidden layer. Its values lie between -1 and 1, since
    longer series would have exploding solutions otherwise. `args` is `tn.PerRow(controls)`.
    """

    first: Dense
    second: Dense

    def __call__(
        self, t: RealScalarLike, y: Float[Array, "num size"], args: PerRow
    ) -> Float[Array, "num size"]:
        """Compute dy/dt."""
        slopes = jax.vmap(lambda control: control.derivative(t))(args.value)
        return jnp.einsum("nij,nj->ni", self.matrix(y), slopes)

    def matrix(self, y: Float[Array, "*batch size"]) -> Float[Array, "*batch size channels"]:
        """Compute f(y), for a `diffrax.ControlTerm`."""
        values = jnp.tanh(self.second(jax.nn.softplus(self.first(y))))
        return values.reshape(*y.shape, -1)


class NeuralCDE(eqx.Module):
    """A neural controlled differential equation dy = f(y) dX from time 0 to 1, and a linear map.

    The control X interpolates a series, one of whose channels is time. The initial state is a
    linear map of its first value. The logits are one of the last state.

    Reference: Kidger, Morrill, Foster and Lyons, Neural Controlled Differential Equations for
    Irregular Time Series, NeurIPS 2020.

    **Arguments:**

    - `num_channels`: the number of channels of a series, with time.
    - `size`: the size of the state.
    - `width`: the size of the hidden layer of the vector field.
    - `num_classes`: the number of classes.
    - `at_knots`: whether adaptive steps end at the knots of the controls. Derivatives of most
        interpolations jump there. A step across a knot has an error that its estimate misses, so a
        solve that does not know the knots is both slow and inaccurate. Controls without such jumps,
        such as natural cubic splines, do not need it. The slopes of a control must not jump, unless
        it is a `diffrax.LinearInterpolation`.
    - `key`: a random key for the weights.
    """

    initial: Dense
    vector_field: ControlledField
    head: Dense
    at_knots: bool = eqx.field(static=True)

    def __init__(
        self,
        num_channels: int,
        size: int,
        width: int,
        num_classes: int,
        *,
        at_knots: bool = True,
        key: PRNGKeyArray,
    ):
        keys = jr.split(key, 4)
        self.initial = paper_dense(num_channels, size, key=keys[0])
        self.vector_field = ControlledField(
            paper_dense(size, width, key=keys[1]),
            paper_dense(width, size * num_channels, key=keys[2]),
        )
        self.head = paper_dense(size, num_classes, key=keys[3])
        self.at_knots = at_knots

    def __call__(
        self, controls: Any, solve: Solve | None = None, *, key: PRNGKeyArray | None = None
    ) -> tuple[Float[Array, "num classes"], dfx.Solution]:
        """Compute the logits of a batch, solved jointly, and the solution.

        **Arguments:**

        - `controls`: a batch of paths from time 0 to 1, made by `jax.vmap` of a function that makes
            one, such as `diffrax.CubicInterpolation`. With `at_knots`, all of them have the same
            knots.
        - `solve`: the solver and its settings; by default Dopri5 with tolerances of 1e-5.
        - `key`: a random key for the penalty.
        """
        start = jax.vmap(lambda control: control.evaluate(control.t0))(controls)
        knots = {}
        if self.at_knots:
            # Behind a jump of the slope, a solver must evaluate it anew.
            jumps = isinstance(controls, dfx.LinearInterpolation)
            knots = {"jump_ts" if jumps else "step_ts": controls.ts[0, 1:-1]}
        solution = (solve or Solve())(
            self.vector_field,
            self.initial(start),
            PerRow(controls),
            **knots,
            key=key,
        )
        return self.head(solution.ys[-1]), solution
