"""The spectral norms of a vector field's weights, and a limit on them."""

from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, Float


T = TypeVar("T", bound=eqx.Module)


def matrices_of(model: Any) -> list[Float[Array, "rows columns"]]:
    """The weight matrices of the vector field. Raises an error if there are none."""
    found = [x for x in jtu.tree_leaves(model.vector_field) if _is_matrix(x)]
    if not found:
        raise ValueError("Spectral norms are of weight matrices, and the vector field has none.")
    return found


def square_of_norm(matrix: Float[Array, "rows columns"]) -> Float[Array, ""]:
    """The square of the spectral norm."""
    smaller = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    return jnp.linalg.eigvalsh(smaller @ smaller.T)[-1]


def with_limited_norms(model: T, most: float) -> T:
    """Scale down the weight matrices of the vector field whose spectral norm is above `most`.

    Its Lipschitz constant, and with it the steps that a solver can take, is at most the product of
    these norms and those of the activations.
    """
    matrices_of(model)  # raises an error if there are none

    def limited(x: Any) -> Any:
        if not _is_matrix(x):
            return x
        return x * jnp.minimum(1.0, most / jnp.sqrt(square_of_norm(x))).astype(x.dtype)

    of = lambda model: model.vector_field
    return eqx.tree_at(of, model, jtu.tree_map(limited, of(model)))


def _is_matrix(x: Any) -> bool:
    return eqx.is_inexact_array(x) and x.ndim == 2
