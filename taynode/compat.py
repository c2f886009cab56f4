"""The interface of torchdiffeq: solvers by name, and vector fields `func(t, y)`."""

import inspect
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, ArrayLike, PRNGKeyArray, PyTree, Real

from ._types import Args, Arrays, Rate, RealScalarLike, Y
from .integration.grid import FixedGrid
from .quadrature import AbstractQuadrature, Sampled
from .registry import MAX_STEPS, one_of, SOLVERS, STOCHASTIC
from .regularizers import AbstractRegularizer
from .solve import diffeqsolve


FIXED = ("euler", "midpoint", "heun", "rk4")
# Our names, and those of torchdiffeq.
ADAPTIVE = {name: name for name in SOLVERS if name not in FIXED + STOCHASTIC} | {
    "adaptive_heun": "heun",
    "fehlberg2": "fehlberg12",
}
# The supported options of torchdiffeq.
OPTIONS = ("step_size",)
Func = Callable[[RealScalarLike, Y], Y]


def odeint(
    func: Func,
    y0: Y,
    t: Real[ArrayLike, "..."],
    *,
    rtol: RealScalarLike | None = None,
    atol: RealScalarLike = 1e-9,
    method: str = "dopri5",
    options: dict[str, RealScalarLike] | None = None,
    step_size: RealScalarLike | None = None,
    regularizer: PyTree[AbstractRegularizer] = None,
    quadrature: AbstractQuadrature = Sampled(),
    key: PRNGKeyArray | None = None,
    max_steps: int | None = MAX_STEPS,
    **others: Any,
) -> Arrays | tuple[Arrays, Rate]:
    """Solve dy/dt = func(t, y) and return the states at the times `t`.

    **Arguments:**

    - `func`: a function `func(t, y)`, or an `eqx.Module` with such a call.
    - `y0`: the state at the first of the times.
    - `t`: a vector of times, increasing or decreasing.
    - `rtol`, `atol`: the tolerances of adaptive methods. By default `rtol` is 1e-7, as in
        torchdiffeq, or ten times the rounding error of the state if that is larger.
    - `method`: the name of the solver: one of `tn.compat.ADAPTIVE` or `tn.compat.FIXED`.
    - `step_size`: the step of fixed methods. By default, they step from each time of `t` to the
        next.
    - `options`: the step size as in torchdiffeq, `options=dict(step_size=0.1)`.
    - `regularizer`, `quadrature`, `key`: as for `tn.diffeqsolve`.
    - `max_steps`, and other keywords such as `adjoint`: as for `tn.diffeqsolve`.

    **Returns:**

    The states, with times along the first axis. With a regularizer, the pair of the states and the
    penalty.
    """
    _check_func(func)
    t = jnp.asarray(t)
    if t.ndim != 1 or t.size < 2:
        raise ValueError(f"`t` must be a vector of at least two times, got shape {t.shape}.")
    one_of("method", method, [*ADAPTIVE, *FIXED])
    step_size = _step_size(step_size, options)
    dt0 = None
    if method in ADAPTIVE:
        if step_size is not None:
            raise ValueError(f"`step_size` is for fixed methods {list(FIXED)}, got {method!r}.")
        rtol = _default_rtol(y0, t) if rtol is None else rtol
        controller = dfx.PIDController(rtol=rtol, atol=atol)
    elif step_size is None:
        controller = FixedGrid(t)
    else:
        controller, dt0 = dfx.ConstantStepSize(), jnp.sign(t[-1] - t[0]) * step_size
    solution = diffeqsolve(
        dfx.ODETerm(_Timed(func)),
        SOLVERS.find(ADAPTIVE.get(method, method))(),
        t[0],
        t[-1],
        dt0,
        y0,
        saveat=dfx.SaveAt(ts=t),
        stepsize_controller=controller,
        regularizer=regularizer,
        quadrature=quadrature,
        key=key,
        max_steps=max_steps,
        **others,
    )
    if regularizer is None:
        return solution.ys
    return solution.ys, solution.stats["penalty"]


def _check_func(func: Any) -> None:
    try:
        inspect.signature(func).bind(None, None)
    except TypeError as error:
        raise TypeError(
            f"`func` must be a function `func(t, y)`, got {func!r}: {error}. For a vector field "
            "`f(t, y, args)`, pass `lambda t, y: f(t, y, args)`."
        ) from None
    except ValueError:
        # A function in C has no signature.
        pass


def _step_size(
    step_size: RealScalarLike | None, options: dict[str, RealScalarLike] | None
) -> RealScalarLike | None:
    options = {} if options is None else options
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ValueError(
            f"`options` may have {list(OPTIONS)}, got {unknown}. Pass arguments of "
            "`tn.diffeqsolve` as keywords of their own."
        )
    if step_size is not None and options:
        raise ValueError("`step_size` is given twice: as an argument and in `options`.")
    return options.get("step_size", step_size)


def _default_rtol(y0: Y, t: Array) -> float:
    with jax.numpy_dtype_promotion("standard"):
        dtype = jnp.result_type(t, *jtu.tree_leaves(y0), jnp.float32)
    return max(1e-7, 10 * float(jnp.finfo(dtype).eps))


class _Timed(eqx.Module):
    """The vector field `f(t, y, args)` of a function `func(t, y)`.

    `func` is a field, so that its parameters can be differentiated.
    """

    func: Func

    def __call__(self, t: RealScalarLike, y: Y, args: Args) -> Y:
        del args
        return self.func(t, y)
