"""The size of the first step."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx

from .._types import Args, Arrays, Norm, RealScalar, RealScalarLike, Y


VARIANTS = ("hairer", "released")


def initial_step_size(
    term: dfx.AbstractTerm,
    t0: RealScalarLike,
    t1: RealScalarLike,
    y0: Y,
    args: Args = None,
    *,
    order: RealScalarLike,
    rtol: RealScalarLike,
    atol: RealScalarLike,
    norm: Norm = optx.rms_norm,
    variant: str = "hairer",
    slope: Y | None = None,
) -> RealScalarLike:
    """Choose a first step that is neither rejected nor wastefully small.

    A small explicit Euler step estimates the second derivative of the solution. The first step is
    chosen such that the first two derivatives predict an error of a hundredth of the tolerance.

    `tn.diffeqsolve(dt0=None)` uses it. `dt0` may also be this function with other options, such as
    `functools.partial(tn.initial_step_size, variant="released")`.

    Reference: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.4.

    **Arguments:**

    - `term`: the term of the system, such as `diffrax.ODETerm(f)`.
    - `t0`, `t1`, `y0`, `args`: as for `diffrax.diffeqsolve`.
    - `order`: the order of the solver.
    - `rtol`, `atol`, `norm`: as for `diffrax.PIDController`.
    - `variant`: `"hairer"`, or `"released"` for the rule of the paper's released code: Euclidean
        norms, which grow with the size of the state, and the sum of the two derivatives instead of
        the larger one.
    - `slope`: the vector field at the start, if it is known already.

    **Returns:**

    The step, which is negative if `t1` lies before `t0`. It has no gradient. It takes one
    evaluation of the vector field, and one more without `slope`.
    """
    if variant not in VARIANTS:
        raise ValueError(f"`variant` must be one of {list(VARIANTS)}, got {variant!r}.")
    arrays, others = eqx.partition((term, t0, t1, y0, args, slope), eqx.is_array)
    term, t0, t1, y0, args, slope = eqx.combine(jax.lax.stop_gradient(arrays), others)
    size = norm if variant == "hairer" else _euclidean
    y0 = jtu.tree_map(jnp.asarray, y0)
    with jax.numpy_dtype_promotion("standard"):
        # Times may be integers.
        dtype = jnp.result_type(t0, t1, 0.0)
    t0, t1 = (jnp.asarray(t, dtype) for t in (t0, t1))
    direction = jnp.where(t0 < t1, 1, -1).astype(jnp.result_type(t0))
    if slope is None:
        slope = term.vf(t0, y0, args)

    with jax.numpy_dtype_promotion("standard"):
        scaled = lambda tree: jtu.tree_map(lambda x, y: x / (atol + rtol * jnp.abs(y)), tree, y0)
        state_size, slope_size = size(scaled(y0)), size(scaled(slope))
        tiny = (state_size < 1e-5) | (slope_size < 1e-5)
        probe = jnp.where(tiny, 1e-6, 0.01 * state_size / jnp.where(tiny, 1, slope_size))
        # The vector field may be defined between the two times only.
        length = jnp.abs(t1 - t0)
        if variant == "hairer":
            probe = jnp.where(length > 0, jnp.minimum(probe, length), probe)
        # A smaller step would not change the time.
        least = 16 * jnp.finfo(jnp.result_type(t0)).eps * jnp.abs(t0)
        probe = jnp.maximum(probe, least)
        ahead = jtu.tree_map(lambda y, f: (y + direction * probe * f).astype(y.dtype), y0, slope)
        time = (t0 + direction * probe).astype(jnp.result_type(t0))
        change = jtu.tree_map(jnp.subtract, term.vf(time, ahead, args), slope)
        change_size = size(scaled(change)) / probe
        if variant == "hairer":
            largest = jnp.maximum(slope_size, change_size)
        else:
            largest = slope_size + change_size
        flat = largest <= 1e-15
        step = (0.01 / jnp.where(flat, 1, largest)) ** (1 / order)
        step = jnp.where(flat, jnp.maximum(1e-6, 1e-3 * probe), step)
        step = jnp.minimum(100 * probe, step)
        # If the vector field is not finite, the solve reports it.
        step = jnp.maximum(jnp.where(jnp.isfinite(step), step, 1e-6), least)
    return jax.lax.stop_gradient(direction * step.astype(direction.dtype))


def _euclidean(tree: Arrays) -> RealScalar:
    total = sum(jnp.sum(jnp.abs(x) ** 2) for x in jtu.tree_leaves(tree))
    return jnp.sqrt(jnp.asarray(total))
