"""A pytree of regularizers as one, and checks of their rates."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jaxtyping import Array, ArrayLike, PRNGKeyArray, PyTree

from .._types import Args, Arrays, Rate, RealScalarLike, VectorField, Y
from ..terms import slope_of
from .base import AbstractRegularizer, is_regularizer, Setting
from .path import AbstractPathRegularizer
from .step import AbstractStepRegularizer
from .trial import Step


class Combined(AbstractRegularizer):
    """A pytree of regularizers as one, whose rate and penalty have the structure of that pytree.

    Quadratures receive it as their one regularizer. It also checks each rate.
    """

    regularizers: PyTree[AbstractRegularizer]

    def in_solve(self, setting: Setting) -> "Combined":
        """Tell each regularizer what solve it is part of."""
        return Combined(self._like([leaf.in_solve(setting) for leaf in self._leaves()]))

    def init(self, y0: Y, args: Args, *, key: PRNGKeyArray | None = None) -> list[PyTree]:
        """Compute the state of each regularizer, with a key of its own."""
        leaves = self._leaves()
        keys = [None] * len(leaves) if key is None else list(jax.random.split(key, len(leaves)))
        return [leaf.init(y0, args, key=k) for leaf, k in zip(leaves, keys, strict=True)]

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: list[PyTree]
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the rate of each regularizer in floating point."""
        results = [
            _checked(leaf, y, leaf.rate(vector_field, t, y, args, s))
            for leaf, s in zip(self._leaves(), state, strict=True)
        ]
        # All slopes are equal, so the compiler merges their computations.
        slope = results[0][0]
        return slope, self._like([jtu.tree_map(_as_float, rate) for _, rate in results])

    def of_step(self, solver: Any, step: Step) -> Rate:
        """Compute the penalty of a step, per unit of time, of each regularizer."""
        return self._like([leaf.of_step(solver, step) for leaf in self._steps()])

    def zero_of_steps(self, dtype: Any) -> Rate:
        """A penalty of no step."""
        return self._like([jnp.zeros((), dtype) for _ in self._steps()])

    def of_path(self, times: Array, states: Arrays) -> Rate:
        """Compute the penalty of a path of each regularizer."""
        leaves = self._of_kind(AbstractPathRegularizer, "PathPoints", "PolynomialDistance")
        part = lambda leaf: jax.vmap(leaf.where)(states)
        return self._like([leaf.of_path(times, part(leaf)) for leaf in leaves])

    def _steps(self) -> list[Any]:
        return self._of_kind(AbstractStepRegularizer, "AcceptedSteps", "ErrorEstimate")

    def _of_kind(self, kind: type, quadrature: str, example: str) -> list[Any]:
        for leaf in self._leaves():
            if not isinstance(leaf, kind):
                raise TypeError(
                    f"`quadrature={quadrature}()` needs regularizers such as `tn.{example}()`, got "
                    f"`{type(leaf).__name__}`, which needs another quadrature."
                )
        return self._leaves()

    def finalize(self, integral: Rate, t0: RealScalarLike, t1: RealScalarLike) -> Rate:
        """Compute the penalty of each regularizer. The integrals of a complex solve become real."""
        treedef = jtu.tree_structure(self.regularizers, is_leaf=is_regularizer)
        integrals = treedef.flatten_up_to(jtu.tree_map(jnp.real, integral))
        return self._like(
            [r.finalize(x, t0, t1) for r, x in zip(self._leaves(), integrals, strict=True)]
        )

    def _leaves(self) -> list[AbstractRegularizer]:
        return jtu.tree_leaves(self.regularizers, is_leaf=is_regularizer)

    def _like(self, values: list[Any]) -> Any:
        return jtu.tree_structure(self.regularizers, is_leaf=is_regularizer).unflatten(values)


def combine(terms: Any, regularizer: Any) -> Combined:
    """Combine a pytree of regularizers for a differential equation with these terms."""
    slope_of(terms)  # raises an error if there is no slope
    leaves = jtu.tree_leaves(regularizer, is_leaf=is_regularizer)
    for leaf in leaves:
        if not is_regularizer(leaf):
            hint = f" Did you mean `{leaf.__name__}(...)`?" if isinstance(leaf, type) else ""
            raise TypeError(
                "`regularizer` must be a regularizer such as `TotalDerivative(order=2)`, or a "
                f"pytree of them, got {leaf!r}.{hint}"
            )
    if not leaves:
        raise ValueError(
            "`regularizer` is an empty pytree, without a regularizer such as "
            "`tn.TotalDerivative(order=2)`. `tn.diffeqsolve` takes `None` for a plain solve."
        )
    return Combined(regularizer)


def _checked(regularizer: AbstractRegularizer, y: Y, result: Any) -> tuple[Y, Rate]:
    """Return the result of `rate` if it is a valid pair, and raise an error otherwise.

    A slope of another shape than the state would make `Augmented` solve another equation.
    """
    name = f"`{type(regularizer).__name__}.rate`"
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{name} must return a pair of the slope dy/dt and the rate of the penalty, got "
            f"{_described(result)}."
        )
    slope, rate = result
    if not _is_like(slope, y):
        hint = " The two seem to be swapped: return the slope first." if _is_like(rate, y) else ""
        raise ValueError(
            f"{name} must return `(slope, rate)`, where the slope has the structure and shapes of "
            f"the state `y`, {_described(y)}; got a slope {_described(slope)} and a rate "
            f"{_described(rate)}.{hint}"
        )
    leaves = jtu.tree_leaves(rate)
    if not leaves or not all(_is_numeric(x) for x in leaves):
        raise TypeError(
            f"{name} must return `(slope, rate)`, where the rate is a number, an array, or a "
            f"pytree of them; got a rate {_described(rate)}."
        )
    return slope, rate


def _is_like(x: Any, y: Y) -> bool:
    if jtu.tree_structure(x) != jtu.tree_structure(y):
        return False
    shapes = lambda tree: [jnp.shape(leaf) for leaf in jtu.tree_leaves(tree)]
    return all(_is_numeric(leaf) for leaf in jtu.tree_leaves(x)) and shapes(x) == shapes(y)


def _is_numeric(x: Any) -> bool:
    return eqx.is_array_like(x) and jnp.issubdtype(jnp.result_type(x), jnp.number)


def _described(tree: Any) -> str:
    short = lambda x: eqx.tree_pformat(x, short_arrays=True)
    return " ".join(short(tree).split()) if jtu.tree_leaves(tree) else repr(tree)


def _as_float(rate: ArrayLike) -> Array:
    rate = jnp.asarray(rate)
    inexact = jnp.issubdtype(rate.dtype, jnp.inexact)
    return rate if inexact else rate.astype(jnp.result_type(float))
