"""Penalties on the parameters of a model instead of its paths."""

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu

from ..._types import RealScalar
from .spectral import matrices_of, square_of_norm


def half_squares(model: eqx.Module) -> RealScalar:
    """Half the sum of squared parameters: weight decay."""
    parameters = jtu.tree_leaves(eqx.filter(model, eqx.is_inexact_array))
    return 0.5 * sum((jnp.sum(x**2) for x in parameters[1:]), jnp.sum(parameters[0] ** 2))


def half_squared_norms(model: eqx.Module) -> RealScalar:
    """Half the sum of squared spectral norms of the vector field's weight matrices.

    Reference: Yoshida and Miyato, Spectral Norm Regularization for Improving the Generalizability
    of Deep Learning, 2017.
    """
    first, *others = (square_of_norm(x) for x in matrices_of(model))
    return 0.5 * sum(others, first)
