"""Trial steps of a solver from any point of a path."""

from typing import Any, NamedTuple

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx

from .._types import Args, Arrays, RealScalar, RealScalarLike, VectorField, Y
from ..solvers.tolerance import scaled_norm
from ..terms import forward
from .base import Setting


# As in diffrax: the first step of a stochastic equation without `dt0`, and the constants of
# `diffrax.PIDController`.
FIRST_STEP = 0.01
SAFETY, LEAST_FACTOR, LARGEST_FACTOR = 0.9, 0.2, 10.0


class Step(NamedTuple):
    """A step of a solver.

    - `t0`, `t1`: its times.
    - `y0`, `y1`: the states before and after it.
    - `error`: the error estimate of the solver; `None` if it has none.
    - `increments`: the slope of each stage times the length of the step, in front of the axes of
        the state; `None` if the solver is not a Runge-Kutta method.
    """

    t0: RealScalar
    t1: RealScalar
    y0: Y
    y1: Y
    error: Y | None
    increments: Arrays | None


def step_of(t0: RealScalarLike, t1: RealScalarLike, y0: Y, made: tuple) -> Step:
    """The step from what the method `step` of a solver returns."""
    y1, error, dense_info, _, _ = made
    return Step(jnp.asarray(t0), jnp.asarray(t1), y0, y1, error, dense_info.get("k"))


def trial_step(
    name: str,
    setting: Setting,
    vector_field: VectorField,
    t: RealScalarLike,
    y: Y,
    args: Args,
    rtol: RealScalarLike,
    atol: RealScalarLike,
) -> Step:
    """Make a step from a point of the path, for the regularizer `name`."""
    solver: Any = setting.solver
    if not _starts_anywhere(solver):
        raise TypeError(
            f"`{name}` makes a trial step, which `solver={type(solver).__name__}()` cannot do "
            "from any point; use an explicit Runge-Kutta method such as `diffrax.Dopri5()`, or "
            "`quadrature=tn.AcceptedSteps()`."
        )
    if setting.is_stochastic:
        return _stochastic_step(name, setting, t, y, args, rtol, atol)
    assert setting.first_step is not None
    length = setting.first_step(vector_field, t, y, args, rtol, atol)
    # The vector field may be defined until the end of the solve only.
    left = setting.t1 - t
    is_cut = (jnp.abs(length) > jnp.abs(left)) & (left != 0)
    length = jnp.where(is_cut, left, length)
    end, term = t + jax.lax.stop_gradient(length), dfx.ODETerm(vector_field)
    made = solver.step(term, t, end, y, args, solver.init(term, t, end, y, args), False)
    return step_of(t, end, y, made)


def _starts_anywhere(solver: Any) -> bool:
    """Whether a step of the solver depends on nothing from before."""
    kind = type(solver)
    if kind is dfx.HalfSolver:
        return _starts_anywhere(solver.solver) or type(solver.solver) in (
            dfx.Euler,
            dfx.EulerHeun,
            dfx.ItoMilstein,
            dfx.StratonovichMilstein,
        )
    return issubclass(kind, dfx.AbstractERK | dfx.AbstractSRK)


def _stochastic_step(
    name: str,
    setting: Setting,
    t: RealScalarLike,
    y: Y,
    args: Args,
    rtol: RealScalarLike,
    atol: RealScalarLike,
) -> Step:
    """A step with the increments of the Brownian path of the solve."""
    solver: Any = setting.solver
    paths = jtu.tree_leaves(setting.terms, is_leaf=_is_unsafe)
    if any(map(_is_unsafe, paths)):
        raise TypeError(
            f"`{name}` makes a trial step on the same Brownian path, and `UnsafeBrownianPath` "
            "draws another one; use `diffrax.VirtualBrownianTree`, or "
            "`quadrature=tn.AcceptedSteps()`."
        )
    dtype = jnp.result_type(t)
    direction = jnp.where(setting.t0 < setting.t1, 1, -1).astype(dtype)
    terms = forward(setting.terms, direction)
    start, last = jax.lax.stop_gradient((t * direction, setting.t1 * direction))

    def step(length):
        # The Brownian path may end with the solve.
        end = jnp.minimum(start + length, last)
        state = solver.init(terms, start, end, y, args)
        try:
            made = solver.step(terms, start, end, y, args, state, False)
        except Exception as error:
            error.add_note(
                f"`{name}` made a trial step of a state with the shapes "
                f"{[jnp.shape(x) for x in jtu.tree_leaves(y)]}. If these are those of one row of a "
                "batch, its Brownian motion is that of all rows: use `tn.Sampled()` without "
                "`batch_axis`, or solve samples one by one with `jax.vmap`."
            )
            raise
        return step_of(start, end, y, made)

    first = FIRST_STEP if setting.dt0 is None else setting.dt0 * direction
    first = jax.lax.stop_gradient(jnp.asarray(first, dtype))
    if setting.rtol is None:
        return step(first)
    return step(_controlled_length(setting, step(first), first, rtol, atol))


def _controlled_length(
    setting: Setting,
    probe: Step,
    length: RealScalar,
    rtol: RealScalarLike,
    atol: RealScalarLike,
) -> RealScalar:
    """The length that step-size control chooses after a step."""
    if probe.error is None:
        return length
    norm = optx.rms_norm if setting.norm is None else setting.norm
    size = scaled_norm(probe.error, probe.y0, probe.y1, rtol, atol, norm)
    order = setting.solver.error_order(setting.terms) or 1.0
    tiny = jnp.finfo(size.dtype).tiny ** 0.5
    factor = SAFETY * jnp.maximum(size, tiny) ** (-1 / order)
    factor = jnp.clip(factor, LEAST_FACTOR, LARGEST_FACTOR)
    return jax.lax.stop_gradient(length * factor.astype(length.dtype))


def _is_unsafe(x: Any) -> bool:
    return isinstance(x, dfx.UnsafeBrownianPath)
