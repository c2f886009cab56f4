"""The number of evaluations that a solver is expected to need."""

import functools as ft
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from .._types import Args, Arrays, Rate, RealScalar, RealScalarLike, VectorField, Y
from ..taylor import along_branches
from .base import AbstractPartRegularizer, mean_square, Setting
from .leading_error import plan


# Evaluations before the first step: the slope, and one more to choose the size of the step.
START = 2
# The first step is chosen small, and the last one is cut at the end.
SHORT_STEPS = 1.5
# Attempts per step of a control without lag: steps are rejected where the solution becomes harder,
# and are too small where it becomes easier. Measured: 1.0 to 1.3.
ATTEMPTS = 1.1


def _as_method(solver: Any) -> dfx.AbstractERK:
    """Refuse all but explicit Runge-Kutta methods with an error estimate."""
    hint = "use an explicit Runge-Kutta method with an error estimate, such as `diffrax.Dopri5()`."
    if isinstance(solver, type):
        raise TypeError(f"`solver` is a class. Did you mean `{solver.__name__}()`?")
    # A wrapped solver counts as an instance of the classes of the solver within.
    name = type(solver).__name__
    if not issubclass(type(solver), dfx.AbstractERK):
        raise TypeError(
            f"`ExpectedNFE` is not defined for `solver={name}(...)`, whose error estimate, if it "
            f"has one, is not that of a single explicit step; {hint}"
        )
    tableau: Any = solver.tableau
    if not np.any(tableau.b_error):
        raise ValueError(f"`solver={name}()` has no error estimate; {hint}")
    if not np.all(tableau.c):
        raise ValueError(f"`solver={name}()` has two stages at the start of the step; {hint}")
    return solver


class ExpectedNFE(AbstractPartRegularizer):
    r"""The number of evaluations of the vector field that a solver is expected to need.

    Its penalty has no units, and a gradient. Its weight in the loss is the price of an evaluation,
    in units of the loss:
    ```python
    regularizer = tn.ExpectedNFE(diffrax.Dopri5(), rtol=1e-5, atol=1e-5)
    # `solve` calls `tn.diffeqsolve`.
    solution = solve(y0, regularizer=regularizer, quadrature=tn.Sampled(batch_axis=0))
    loss = loss + 0.005 * solution.stats["penalty"]
    ```
    It is an estimate for this solver and these tolerances, whatever solves the equation. So a model
    that is trained with a fixed grid or a loose tolerance can be penalized for the solver that it
    is used with.

    The error estimate of a step of size h is $E h^p$ to leading order. Step-size control keeps it
    near the tolerance, so the number of steps per unit of time is
    $n = (|E| / \mathrm{tolerance})^{1/p}$. $E$ is computed from the coefficients of the solver. It
    contains all elementary differentials of order p, and takes 7 evaluations for `Dopri5`, 11 for
    `Tsit5` and 3 for `Bosh3`. No step is longer than the interval, so n is at least one step per
    interval. Each step costs its stages. Steps that are rejected, or smaller than needed, are
    counted with a factor that was measured.

    The estimate is meant for more than about five steps. It does not know steps that are limited
    by stability. The penalty is concave, like the root, so at a high price a model that has learned
    nothing yet may stay so. If that happens, let the price rise during training.

    If the state is a batch, `tn.Sampled()` estimates the evaluations of a joint solve, whose
    control takes the root mean square over the batch. `tn.Sampled(batch_axis=0)` estimates the mean
    over rows that are solved one by one.

    **Arguments:**

    - `solver`: an explicit Runge-Kutta method with an error estimate, such as `diffrax.Dopri5()`.
    - `rtol`, `atol`: the tolerances, as for `diffrax.PIDController`.
    - `safety`, `icoeff`: as for `diffrax.PIDController`.
    - `interval`: the length of the solve. `tn.diffeqsolve` knows it.
    - `where`: a function that selects the part of the state whose error is controlled, such as
        `lambda y: y[0]`; by default all of it.
    """

    solver: dfx.AbstractERK = eqx.field(converter=_as_method)
    rtol: RealScalarLike
    atol: RealScalarLike
    safety: RealScalarLike = eqx.field(default=0.9, kw_only=True)
    icoeff: RealScalarLike = eqx.field(default=1.0, kw_only=True)
    interval: RealScalarLike | None = eqx.field(default=None, kw_only=True)

    def __check_init__(self):
        for name in ("rtol", "atol", "safety", "icoeff"):
            value = getattr(self, name)
            # Traced values are not known.
            known = isinstance(value, int | float)
            if known and not value >= 0:
                raise ValueError(f"`{name}` must not be negative, got {value!r}.")
            if known and value == 0 and name in ("safety", "icoeff"):
                raise ValueError(f"`{name}` must be positive, got {value!r}.")

    def in_solve(self, setting: Setting) -> "ExpectedNFE":
        """Know the length of the solve."""
        setting.refuse_noise("ExpectedNFE", "its model of errors is that of smooth paths")
        if self.interval is not None:
            return self
        length = jax.lax.stop_gradient(jnp.abs(setting.t1 - setting.t0))
        return eqx.tree_at(lambda r: r.interval, self, length, is_leaf=lambda x: x is None)

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the number of steps per unit of time."""
        del state
        order, sweeps, result = plan(type(self.solver))
        slope, error = along_branches(
            vector_field, t, y, args, sweeps=sweeps, result=result, where=self.where
        )
        scaled = jtu.tree_map(self._in_tolerances, error, self.where(y))
        # Control keeps the estimate at safety^(error_order / icoeff) of the tolerance.
        error_order: Any = self.solver.error_order(dfx.ODETerm(vector_field))
        margin = self.safety ** (error_order / (self.icoeff * order))
        return slope, _root(scaled, order, margin * self._at_least()) / margin

    def _at_least(self) -> RealScalarLike:
        """A step per interval; none if there is no interval."""
        if self.interval is None:
            return 0.0
        exists = self.interval > 0
        return jnp.where(exists, 1 / jnp.where(exists, self.interval, 1.0), 0.0)

    def finalize(self, integral: Rate, t0: RealScalarLike, t1: RealScalarLike) -> Rate:
        """Compute the number of evaluations from the number of steps."""
        del t0, t1
        tableau: Any = self.solver.tableau
        # First-same-as-last methods reuse a stage.
        per_step = tableau.num_stages - int(tableau.fsal)
        return START + per_step * (SHORT_STEPS + ATTEMPTS * integral)

    def _in_tolerances(self, error: Arrays, y: Arrays) -> Arrays:
        dtype = jnp.finfo(jnp.result_type(y)).dtype
        atol, rtol = jnp.asarray(self.atol, dtype), jnp.asarray(self.rtol, dtype)
        return error / jax.lax.stop_gradient(atol + rtol * jnp.abs(y))


def _root(scaled: Arrays, order: int, least: RealScalarLike) -> RealScalar:
    """The root mean square to the power 1 / order, and at least `least` by a smooth maximum.

    The maximum also bounds the slope, which would be infinite at zero.
    """
    leaves = jax.lax.stop_gradient(jtu.tree_leaves(scaled))
    dtype = jnp.finfo(jnp.result_type(*leaves)).dtype
    floor = jnp.maximum(jnp.asarray(least, dtype) ** order, jnp.finfo(dtype).tiny ** 0.25)
    # The squares of large errors would overflow.
    largest = ft.reduce(jnp.maximum, (jnp.max(jnp.abs(x)).astype(dtype) for x in leaves), floor)
    unit = jtu.tree_map(lambda x: x / largest.astype(x.dtype), scaled)
    square = mean_square(unit) + (floor / largest) ** 2
    return square ** (0.5 / order) * largest ** (1 / order)
