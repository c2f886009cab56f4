"""Errors in units of the tolerance."""

import jax.numpy as jnp
import jax.tree_util as jtu

from .._types import Norm, RealScalar, RealScalarLike, Y


def scaled_norm(
    error: Y, y0: Y, y1: Y, rtol: RealScalarLike, atol: RealScalarLike, norm: Norm
) -> RealScalar:
    """The norm of an error in units of the tolerance, as in `diffrax.PIDController`."""

    def scale(error, y0, y1):
        relative, absolute = (jnp.asarray(x).astype(error.dtype) for x in (rtol, atol))
        return error / (absolute + relative * jnp.maximum(jnp.abs(y0), jnp.abs(y1)))

    return jnp.asarray(norm(jtu.tree_map(scale, error, y0, y1)))
