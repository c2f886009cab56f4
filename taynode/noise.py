"""The distributions of random directions in Hutchinson's estimators."""

import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, PRNGKeyArray


# Both have mean zero and covariance one, so the estimates are unbiased.
DISTRIBUTIONS = {"rademacher": jr.rademacher, "gaussian": jr.normal}


def check_noise(noise: str) -> None:
    """Raise an error unless `noise` is the name of a distribution."""
    if noise not in DISTRIBUTIONS:
        raise ValueError(f"`noise` must be one of {list(DISTRIBUTIONS)}, got {noise!r}.")


def draw_direction(noise: str, like: ArrayLike, key: PRNGKeyArray) -> Array:
    """Draw a direction with the shape and dtype of an array; its imaginary part is zero."""
    dtype = jnp.result_type(like)
    real = jnp.finfo(dtype).dtype
    return DISTRIBUTIONS[noise](key, jnp.shape(like), real).astype(dtype)
