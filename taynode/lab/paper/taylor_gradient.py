"""The gradient of R_K at a point, by Taylor mode and by nested differentiation."""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PyTree

from ..._types import RealScalar, VectorField
from ...models import NeuralODEClassifier
from ...taylor import solution_derivatives


@dataclasses.dataclass(frozen=True)
class Gradient:
    """A compiled gradient.

    - `call`: computes it.
    - `num_written`, `num_compiled`: its floating-point operations before and after compilation.
    """

    call: Callable[[], PyTree[Array]]
    num_written: float
    num_compiled: float


def gradient_of(order: int, *, nested: bool) -> Gradient:
    """The gradient of R_K for a batch and the paper's classifier of MNIST."""
    key = jr.key(0)
    field = NeuralODEClassifier(784, 100, 10, key=key).vector_field
    y = jr.normal(key, (100, 784))
    arrays, static = eqx.partition(field, eqx.is_inexact_array)

    def penalty(arrays: PyTree[Array], y: Float[Array, "batch dim"]) -> RealScalar:
        field = eqx.combine(arrays, static)
        if nested:
            derivative = _nested(field, order)(jnp.array(0.3), y)
        else:
            derivative = solution_derivatives(field, jnp.array(0.3), y, order=order)[-1]
        return jnp.mean(derivative**2)

    lowered = jax.jit(jax.grad(penalty)).lower(arrays, y)
    compiled = lowered.compile()
    call = lambda: jax.block_until_ready(compiled(arrays, y))
    call()
    return Gradient(call, *(float(x.cost_analysis()["flops"]) for x in (lowered, compiled)))


def _nested(field: VectorField, order: int) -> Callable[[Array, Array], Array]:
    derivative = lambda t, y: field(t, y, None)
    for _ in range(order - 1):
        derivative = lambda t, y, of=derivative: jax.jvp(
            of, (t, y), (jnp.ones_like(t), field(t, y, None))
        )[1]
    return derivative
