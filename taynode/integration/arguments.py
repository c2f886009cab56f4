"""Checks of the arguments of a solve."""

import math
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.core import Tracer

from .control import innermost
from .problem import Problem, state_dtypes
from .warn import warn


# The arguments that are objects of diffrax.
KINDS = {
    "solver": (dfx.AbstractSolver, "diffrax.Dopri5()"),
    "stepsize_controller": (
        dfx.AbstractStepSizeController,
        "diffrax.PIDController(rtol=1e-5, atol=1e-5)",
    ),
    "adjoint": (dfx.AbstractAdjoint, "tn.AcceptedStepAdjoint()"),
    "saveat": (dfx.SaveAt, "diffrax.SaveAt(t1=True)"),
    "event": (dfx.Event, "diffrax.Event(cond_fn)"),
}


def check_arguments(problem: Problem) -> None:
    """Raise an error for arguments that diffrax would misread, and warn of too small a tolerance.

    Only values that are known before compilation can be checked.
    """
    if callable(problem.terms) and not isinstance(problem.terms, dfx.AbstractTerm):
        raise TypeError(
            "`terms` must be a term, got a function. Wrap the vector field in `diffrax.ODETerm`: "
            "`tn.diffeqsolve(diffrax.ODETerm(vector_field), ...)`."
        )
    for argument, (kind, example) in KINDS.items():
        value = getattr(problem, argument)
        if isinstance(value, type):
            name = value.__name__
            raise TypeError(f"`{argument}` must be an instance, got the class; write `{name}()`.")
        if not isinstance(value, kind) and not (argument == "event" and value is None):
            raise TypeError(f"`{argument}` must be such as `{example}`, got {value!r}.")
    _check_first_step(problem)
    if problem.is_adaptive:
        _check_tolerances(problem)


def check_values(t0: Any, t1: Any, y0: Any) -> None:
    """Raise an error unless times are single numbers, and a state is made of arrays."""
    for name, value in {"t0": t0, "t1": t1}.items():
        if not eqx.is_array_like(value):
            raise TypeError(f"`{name}` must be a number, got {value!r}.")
        if np.ndim(value):
            raise ValueError(
                f"`{name}` must be a single number, got an array of shape {np.shape(value)}. For "
                "a time of its own in each sample, solve under `jax.vmap`."
            )
    for path, leaf in jtu.tree_leaves_with_path(y0):
        if not eqx.is_array_like(leaf):
            raise TypeError(f"`y0{jtu.keystr(path)}` must be an array or a number, got {leaf!r}.")


def note_of_field(problem: Problem) -> str | None:
    """What is wrong with the slope at the start of a solve that failed, if it is the cause.

    JAX names neither the vector field nor what it was called with.
    """
    shapes = lambda tree: jtu.tree_map(jnp.shape, tree)
    try:
        term = problem.slope_term
    except Exception:
        # A term of the user's own need not have a slope.
        return None
    try:
        slope = eqx.filter_eval_shape(term.vector_field, problem.t0, problem.y0, problem.args)
    except Exception:
        return (
            "The vector field of `terms` fails at `t0`, `y0` and `args`. It is called as "
            f"`vector_field(t, y, args)`, here with y of shape {shapes(problem.y0)}"
            f"{' and `args=None`' if problem.args is None else ''}."
        )
    same_tree = jtu.tree_structure(slope) == jtu.tree_structure(problem.y0)
    # diffrax broadcasts.
    fits = lambda dy, y: _broadcasts(jnp.shape(dy), jnp.shape(y))
    if same_tree and jtu.tree_all(jtu.tree_map(fits, slope, problem.y0)):
        return None
    return (
        f"The vector field of `terms` returns dy/dt of shape {shapes(slope)} for `y0` of shape "
        f"{shapes(problem.y0)}. The two must be the same."
    )


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(a in (1, b) for a, b in pairs)


def _check_first_step(problem: Problem) -> None:
    t0, t1, dt0 = (_known_number(t) for t in (problem.t0, problem.t1, problem.dt0))
    if t0 is None or t1 is None or dt0 is None:
        return
    if (t1 - t0) * dt0 < 0:
        raise ValueError(
            f"`dt0` must have the sign of `t1 - t0`, got dt0={dt0:g} from t0={t0:g} to t1={t1:g}."
        )
    # A controller with a smallest step raises `dt0` to it.
    least = getattr(innermost(problem.stepsize_controller), "dtmin", None)
    if dt0 == 0 and t0 != t1 and least is None:
        hint = "; `dt0=None` chooses a first step" if problem.is_adaptive else ""
        raise ValueError(f"`dt0` must not be zero to get from t0={t0:g} to t1={t1:g}{hint}.")


def _check_tolerances(problem: Problem) -> None:
    controller = problem.stepsize_controller
    for name in ("rtol", "atol"):
        value = _known_number(getattr(controller, name, None))
        if value is not None and (value < 0 or math.isnan(value)):
            wrong = "NaN" if math.isnan(value) else "negative"
            raise ValueError(f"`{name}` must not be {wrong}, got {value:g}.")
    rtol = _known_number(controller.rtol) or 0.0
    for dtype in state_dtypes(problem):
        # If `rtol` is zero, only `atol` counts.
        if 0 < rtol < jnp.finfo(dtype).eps:
            warn(
                f"`rtol={rtol:.2g}` is below what {dtype} can resolve "
                f"({jnp.finfo(dtype).eps:.2g}), so steps are rejected for rounding errors. Loosen "
                'it, or use double precision: `jax.config.update("jax_enable_x64", True)`.'
            )


def _known_number(x: Any) -> float | None:
    if not eqx.is_array_like(x) or isinstance(x, Tracer):
        return None
    return None if np.ndim(x) or np.iscomplexobj(x) else float(np.asarray(x))


def check_key(key: Any) -> None:
    """Raise an error unless a key is absent or a single random key."""
    if key is None:
        return
    dtype = getattr(key, "dtype", None)
    is_typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    is_key = is_typed or dtype == np.uint32
    if not is_key:
        raise TypeError(f"`key` must be a random key such as `jax.random.key(0)`, got {key!r}.")
    if jnp.ndim(key) != (0 if is_typed else 1):
        raise ValueError(
            f"`key` must be a single random key, got several, of shape {jnp.shape(key)}: solve "
            "under `jax.vmap` to use one for each sample."
        )
