"""B: the Frobenius norm of the vector field's Jacobian, estimated with one random direction."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu

from .._types import Args, Key, Scalar, VectorField, Y
from .base import AbstractRegularizer, as_selection, everything, mean_square, select


DISTRIBUTIONS = {"rademacher": jr.rademacher, "gaussian": jr.normal}
FORMS = ("vjp", "jvp")


@runtime_checkable
class HasJacobianProduct(Protocol):
    """A vector field that computes a product of a random direction with its Jacobian anyway."""

    def jacobian_product(self, t: Scalar, y: Y, args: Args, direction: Y) -> tuple[Y, Any]:
        """The slope, and the product: with the direction that is given, or one of its own."""
        ...


class JacobianFrobenius(AbstractRegularizer):
    r"""The squared Frobenius norm of df/dy divided by the dimension, by Hutchinson's estimator.

    One random direction $\varepsilon$ is drawn per solve and held fixed during it; the mean over
    draws of $|\varepsilon^\top J|^2$ is the squared norm. Needs `key=`.

    **Arguments:**

    - `noise`: the distribution of the direction, `"rademacher"` or `"gaussian"`.
    - `form`: `"vjp"` for $\varepsilon^\top J$, as RNODE's paper has it and flows share it with
        their trace, or `"jvp"` for $J \varepsilon$. Both have the same expectation.
    - `where`: which part of the state is charged; all of it by default. The Jacobian is then that
        of this part with respect to itself.

    A vector field with a method `jacobian_product(t, y, args, direction)`, such as that of
    `tn.models.ContinuousFlow`, is asked for the product instead.
    """

    noise: str = eqx.field(static=True, default="rademacher", kw_only=True)
    form: str = eqx.field(static=True, default="vjp", kw_only=True)
    where: Callable[[Y], Any] = eqx.field(
        static=True, default=everything, kw_only=True, converter=as_selection
    )

    def __check_init__(self):
        if self.noise not in DISTRIBUTIONS:
            raise ValueError(f"`noise` must be one of {list(DISTRIBUTIONS)}, got {self.noise!r}.")
        if self.form not in FORMS:
            raise ValueError(f"`form` must be one of {list(FORMS)}, got {self.form!r}.")

    def init(self, y0: Y, args: Args, *, key: Key | None = None) -> Any:
        """The random direction: like the state, and zero where it is not charged."""
        del args
        if key is None:
            raise ValueError(
                "`JacobianFrobenius` draws a random direction, so the solve needs `key=`; "
                "pass for example `key=jax.random.key(0)`, and another one at each training step."
            )
        if y0 is None:
            raise ValueError("`JacobianFrobenius` needs `y0=` to know the shapes of the state.")
        leaves, treedef = jtu.tree_flatten(y0)
        keys = jr.split(key, len(leaves))
        draw = DISTRIBUTIONS[self.noise]
        directions = [
            draw(k, jnp.shape(leaf), _real_dtype(leaf)).astype(jnp.result_type(leaf))
            for k, leaf in zip(keys, leaves, strict=True)
        ]
        return jax.lax.stop_gradient(treedef.unflatten(directions))

    def rate(
        self, vector_field: VectorField, t: Scalar, y: Y, args: Args, state: Any
    ) -> tuple[Y, Any]:
        """The slope, and the mean square of the product of Jacobian and direction."""
        direction = mask(self.where, state)
        own = _with_product(vector_field)
        if own is not None and self.form == "vjp":
            slope, product = own.jacobian_product(t, y, args, direction)
            return slope, mean_square(jtu.tree_leaves(product))
        field = lambda y: vector_field(t, y, args)
        if self.form == "vjp":
            slope, transpose = jax.vjp(field, y)
            (product,) = transpose(direction)
        else:
            slope, product = jax.jvp(field, (y,), (direction,))
        return slope, mean_square(select(self.where, product))


def _with_product(vector_field: VectorField) -> HasJacobianProduct | None:
    """The vector field, or that within the term whose method it is, if it has a product."""
    term = getattr(vector_field, "__self__", None)
    field = term.vector_field if isinstance(term, dfx.ODETerm) else vector_field
    return field if isinstance(field, HasJacobianProduct) else None


def mask(where: Callable[[Y], Any], direction: Y) -> Y:
    """The direction, with zeros where `where` does not look."""
    # The transpose of a selection puts what was selected back into its place.
    part, put_back = jax.vjp(where, direction)
    return put_back(part)[0]


def _real_dtype(leaf: Any) -> Any:
    return jnp.finfo(jnp.result_type(leaf)).dtype
