"""A limit on the spectral norms of a vector field's weights."""

from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float


T = TypeVar("T", bound=eqx.Module)


def with_limited_norms(model: T, most: float) -> T:
    """Scale down the weight matrices of the vector field whose spectral norm is above `most`.

    Its Lipschitz constant, and with it the steps that a solver can take, is at most the product of
    these norms and those of the activations.
    """

    def limited(x: Any) -> Any:
        if not eqx.is_inexact_array(x) or x.ndim != 2:
            return x
        return x * jnp.minimum(1.0, most / _spectral_norm(x)).astype(x.dtype)

    of = lambda model: model.vector_field
    if not any(jnp.ndim(x) == 2 for x in jtu.tree_leaves(eqx.filter(of(model), eqx.is_array))):
        raise ValueError("`spectral_norm` limits weight matrices, and the vector field has none.")
    return eqx.tree_at(of, model, jtu.tree_map(limited, of(model)))


def _spectral_norm(matrix: Float[Array, "rows columns"]) -> Float[Array, ""]:
    smaller = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    return jnp.sqrt(jnp.linalg.eigvalsh(smaller @ smaller.T)[-1])
