"""The interface of regularizers: a rate at each point of a solution's path."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, PRNGKeyArray, PyTree

from .._types import Args, Arrays, Norm, Rate, RealScalar, RealScalarLike, VectorField, Y
from ..terms import noise_of


Where = Callable[[Y], Arrays]


class Setting(NamedTuple):
    """What a regularizer may know of the solve that it is part of.

    - `t0`, `t1`: the interval of the solve.
    - `solver`: the solver.
    - `rtol`, `atol`, `norm`: those of step-size control; `None` if the steps are not adaptive.
    - `first_step`: a function `(vector_field, t, y, args, rtol, atol) -> h`, which chooses a step
        as if the solve began at this point.
    - `terms`, `dt0`: of a stochastic equation, whose noise is not part of the vector field: the
        terms, and the first step if it is given.
    """

    t0: RealScalarLike
    t1: RealScalarLike
    solver: Any = None
    rtol: RealScalarLike | None = None
    atol: RealScalarLike | None = None
    norm: Norm | None = None
    first_step: Callable[..., RealScalarLike] | None = None
    terms: Any = None
    dt0: RealScalarLike | None = None

    @property
    def is_stochastic(self) -> bool:
        """Whether Brownian motion drives the equation."""
        return bool(noise_of(self.terms))

    def refuse_noise(self, name: str, why: str) -> None:
        """Raise an error if the equation is stochastic, for a regularizer of this name."""
        if self.is_stochastic:
            raise TypeError(
                f"`{name}` is not defined for stochastic equations: {why}. Use "
                "`tn.ErrorEstimate()`, or `tn.TotalDerivative(order=2)`, which is that of the "
                "drift."
            )


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

    def in_solve(self, setting: "Setting") -> "AbstractRegularizer":
        """Return the regularizer for a solve with this setting; the same one by default."""
        del setting
        return self

    def init(self, y0: Y, args: Args, *, key: PRNGKeyArray | None = None) -> PyTree:
        """Compute a state that is held fixed during a solve, such as noise; `None` by default.

        **Arguments:**

        - `y0`: the initial state. Only its shapes should matter, since with `Sampled` it may be
            one row of a batch.
        - `args`: as for the vector field.
        - `key`: a random key for this regularizer alone, or `None` if the solve has none.

        **Returns:**

        The state for `rate`.
        """
        del y0, args, key
        return None

    @abc.abstractmethod
    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
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

    def finalize(self, integral: Rate, t0: RealScalarLike, t1: RealScalarLike) -> Rate:
        """Compute the penalty from the integral of the rate; the integral itself by default.

        **Arguments:**

        - `integral`: the integral of the rate from `t0` to `t1`.
        - `t0`: the start of the solve.
        - `t1`: the end of the solve, which is earlier than its argument `t1` after an event.
        """
        del t0, t1
        return integral


def _everything(y: Y) -> Y:
    return y


def _as_selection(where: Any) -> Where:
    if not callable(where):
        raise TypeError(
            "`where` must be a function that selects a part of the state, such as "
            f"`where=lambda y: y[0]`, got {where!r}."
        )
    return where


class AbstractPartRegularizer(AbstractRegularizer):
    """A regularizer that penalizes a part of the state.

    **Arguments:**

    - `where`: a function of a state that returns the part to penalize, such as `lambda y: y[0]`;
        by default all of it.
    """

    where: Where = eqx.field(
        static=True, default=_everything, kw_only=True, converter=_as_selection
    )


def mean_square(part: Arrays) -> RealScalar:
    """Compute the sum of squares over a part of the state, divided by its number of elements."""
    return mean(jtu.tree_map(_square, part))


def mean(part: Arrays) -> RealScalar:
    """Compute the sum over a part of the state, divided by its number of elements."""
    leaves = jtu.tree_leaves(part)
    size = sum(jnp.size(leaf) for leaf in leaves)
    if size == 0:
        raise ValueError("`where` selects nothing of the state, so there is nothing to penalize.")
    # A state may mix precisions. The result has the widest of them.
    dtype = jnp.finfo(jnp.result_type(*leaves)).dtype
    total: Any = sum(jnp.sum(leaf).astype(dtype) for leaf in leaves)
    return total / size


def _square(x: Array) -> Array:
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def is_regularizer(x: Any) -> bool:
    """For use as `is_leaf`."""
    return isinstance(x, AbstractRegularizer)
