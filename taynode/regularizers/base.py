"""The interface of regularizers: a rate at each point of a solution's path."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray

from .._types import Args, RealScalarLike, VectorField, Y


class AbstractRegularizer(eqx.Module):
    """A penalty on the path of a solution: the integral of a rate over time.

    A regularizer of your own needs just a method `rate`:
    ```python
    class Jerk(tn.AbstractRegularizer):
        def rate(self, vector_field, t, y, args, state):
            dy, _, d3y = tn.solution_derivatives(vector_field, t, y, args, order=3)
            return dy, jnp.max(jnp.abs(d3y))
    ```
    """

    def init(self, y0: Y, args: Args, *, key: PRNGKeyArray | None = None) -> Any:
        """Draw or compute what is held fixed during a solve; nothing by default.

        **Arguments:**

        - `y0`: the initial state. Only its shapes should matter, since with `Sampled` it may be
            one row of a batch.
        - `args`: as for the vector field.
        - `key`: a random key for this regularizer alone, or `None` if the caller gave none.

        **Returns:**

        A state, which is handed to `rate`.
        """
        del y0, args, key
        return None

    @abc.abstractmethod
    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: Any
    ) -> tuple[Y, Any]:
        """Compute the slope dy/dt and the penalty per unit of time at one point of the path.

        The slope is part of the result because most rates compute it anyway, and the vector field
        should not be evaluated twice at the same point.

        **Arguments:**

        - `vector_field`: a function `f(t, y, args)`.
        - `t`, `y`, `args`: the point of the path.
        - `state`: the result of `init`.

        **Returns:**

        A pair `(slope, rate)`. The slope has the structure and shapes of `y`. The rate is a number,
        an array, or a pytree of them.
        """

    def finalize(self, integral: Any, t0: RealScalarLike, t1: RealScalarLike) -> Any:
        """Compute the penalty from the integral of the rate; the integral itself by default.

        **Arguments:**

        - `integral`: the integral of the rate from `t0` to `t1`.
        - `t0`: the start of the solve.
        - `t1`: the end of the solve. It is before the `t1` of the solve if an event ended it.
        """
        del t0, t1
        return integral


def everything(y: Y) -> Y:
    """The default of `where`: all of the state is charged."""
    return y


def as_selection(where: Any) -> Callable[[Y], Any]:
    """Convert the argument `where` of regularizers; it must be a function."""
    if not callable(where):
        raise TypeError(
            "`where` must be a function that selects a part of the state, such as "
            f"`where=lambda y: y[0]`, got {where!r}."
        )
    return where


def select(where: Callable[[Y], Any], y: Y) -> list[Any]:
    """The charged leaves of the state."""
    leaves = jtu.tree_leaves(where(y))
    if not sum(jnp.size(leaf) for leaf in leaves):
        raise ValueError("`where` selects nothing of the state, so there is nothing to charge.")
    return leaves


def mean_square(leaves: list[Any]) -> Any:
    """The sum of squares over all leaves, divided by their number of elements."""
    # A state may mix precisions; the charge is as wide as the widest of them.
    dtype = jnp.finfo(jnp.result_type(*leaves)).dtype
    total = sum(jnp.sum(_square(leaf)).astype(dtype) for leaf in leaves)
    return total / sum(leaf.size for leaf in leaves)


def _square(x: Any) -> Any:
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def is_regularizer(x: Any) -> bool:
    """For use as `is_leaf`."""
    return isinstance(x, AbstractRegularizer)
