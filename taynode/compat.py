"""For habits from torchdiffeq: solvers by name, and vector fields `func(t, y)`."""

from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp

from ._types import Key, Y
from .integration.grid import FixedGrid
from .quadrature import AbstractQuadrature, Augmented
from .registry import one_of, SOLVERS
from .solve import diffeqsolve


FIXED = ("euler", "midpoint", "heun", "rk4")
# The names of torchdiffeq beside ours.
ADAPTIVE = {name: name for name in SOLVERS if name not in FIXED} | {
    "adaptive_heun": "heun",
    "fehlberg2": "fehlberg12",
}


def odeint(
    func: Callable[[Any, Y], Y],
    y0: Y,
    t: Any,
    *,
    rtol: Any = 1e-7,
    atol: Any = 1e-9,
    method: str = "dopri5",
    step_size: Any = None,
    regularizer: Any = None,
    quadrature: AbstractQuadrature = Augmented(),
    key: Key | None = None,
    max_steps: int | None = 4096,
    **options: Any,
) -> Any:
    """Solve dy/dt = func(t, y) and return the states at the times `t`.

    **Arguments:**

    - `func`: a function `func(t, y)`, or an `eqx.Module` with such a call.
    - `y0`: the state at the first of the times.
    - `t`: a vector of times, increasing or decreasing.
    - `rtol`, `atol`: tolerances of adaptive methods.
    - `method`: the solver by its name: one of `tn.compat.ADAPTIVE` or `tn.compat.FIXED`.
    - `step_size`: of fixed methods; they step from time to time of `t` by default.
    - `regularizer`, `quadrature`, `key`: as for `tn.diffeqsolve`.
    - `max_steps`, `options`: handed on to `tn.diffeqsolve`, such as `adjoint=`.

    **Returns:**

    The states, with a leading axis of times; with a regularizer, the pair of these and the penalty.
    """
    t = jnp.asarray(t)
    if t.ndim != 1 or t.size < 2:
        raise ValueError(f"`t` must be a vector of at least two times, got shape {t.shape}.")
    one_of("method", method, [*ADAPTIVE, *FIXED])
    if method in ADAPTIVE:
        if step_size is not None:
            raise ValueError(f"`step_size` is for fixed methods {list(FIXED)}, got {method!r}.")
        solver = SOLVERS.find(ADAPTIVE[method])()
        controller, dt0 = dfx.PIDController(rtol=rtol, atol=atol), None
    else:
        solver = SOLVERS.find(method)()
        controller, dt0 = FixedGrid(t), None
        if step_size is not None:
            controller, dt0 = dfx.ConstantStepSize(), jnp.sign(t[-1] - t[0]) * step_size
    solution = diffeqsolve(
        dfx.ODETerm(_Timed(func)),
        solver,
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
        **options,
    )
    if regularizer is None:
        return solution.ys
    return solution.ys, solution.stats["penalty"]


class _Timed(eqx.Module):
    """A vector field without arguments. What it holds is a pytree, so parameters are seen in it."""

    func: Callable[[Any, Y], Y]

    def __call__(self, t: Any, y: Y, args: Any) -> Y:
        del args
        return self.func(t, y)
