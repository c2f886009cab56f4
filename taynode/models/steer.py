"""Random end times in training."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, PRNGKeyArray, Real

from .._types import RealScalar


def random_ends(
    t0: RealScalar, t1: RealScalar, saveat: dfx.SaveAt, spread: float, *, key: PRNGKeyArray
) -> tuple[RealScalar, dfx.SaveAt]:
    """Move the end of a solve, or its output times, at random.

    A model that is trained so cannot rely on the exact time of an output. Its paths are smooth
    around it.

    A solve with a single output, at `t1`, ends at a time between `t1 - spread * (t1 - t0)` and
    `t1 + spread * (t1 - t0)`. A solve with outputs at times `ts` has outputs at other times, each
    of which differs by at most `spread` times the distance to the nearest other output. So they
    keep their order.

    Reference: Ghosh, Behl, Dupont, Torr and Namboodiri, STEER: Simple Temporal Regularization for
    Neural ODEs, NeurIPS 2020.
    """
    subs = saveat.subs
    if not isinstance(subs, dfx.SubSaveAt) or subs.steps:
        raise ValueError("`steer` needs `saveat=SaveAt(t1=True)` or `saveat=SaveAt(ts=...)`.")
    if subs.ts is not None and spread > 0.5:
        raise ValueError(
            f"`steer` must be at most 1/2 if there are several output times, got {spread!r}: "
            "otherwise they could change places."
        )
    if subs.ts is None:
        unit = jr.uniform(key, (), t1.dtype, -1, 1)
        return t1 + spread * unit * (t1 - t0), saveat
    ts = jnp.asarray(subs.ts, t1.dtype)
    moved = ts + spread * jr.uniform(key, ts.shape, ts.dtype, -1, 1) * _gaps(t0, ts)
    moved = jax.lax.stop_gradient(moved)
    forward = t1 >= t0
    end = jnp.where(forward, jnp.maximum(t1, moved[-1]), jnp.minimum(t1, moved[-1]))
    return end, eqx.tree_at(lambda s: s.subs.ts, saveat, moved)


def _gaps(t0: RealScalar, ts: Real[Array, " times"]) -> Real[Array, " times"]:
    """The distance of each time to the nearest other one, with the beginning among them."""
    before = jnp.abs(jnp.diff(ts, prepend=t0[None]))
    after = jnp.append(before[1:], jnp.asarray(jnp.inf, ts.dtype))
    return jnp.minimum(before, after)
