"""B: the Frobenius norm of the vector field's Jacobian, estimated with one random direction."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import diffrax as dfx
import equinox as eqx
import jax
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray

from .._types import Args, RealScalarLike, VectorField, Y
from ..noise import check_noise, draw_direction
from .base import AbstractRegularizer, as_selection, everything, mean_square, select


FORMS = ("vjp", "jvp")


class SharedProduct(NamedTuple):
    r"""A product $\varepsilon^\top J$ that a vector field computes for a purpose of its own.

    - `slope`: dy/dt of the whole state.
    - `part`: the part of the state whose Jacobian it is: leaves of `y`, the very same objects.
    - `product`: a pytree like `part`.
    - `noise`: the distribution of $\varepsilon$.
    """

    slope: Y
    part: Any
    product: Any
    noise: str


@runtime_checkable
class HasJacobianProduct(Protocol):
    """A vector field that multiplies a random direction with its Jacobian anyway, as flows do."""

    def jacobian_product(self, t: RealScalarLike, y: Y, args: Args) -> SharedProduct | None:
        """The slope and the product at a point, or `None` if there is no product to share."""
        ...


class JacobianFrobenius(AbstractRegularizer):
    r"""The squared Frobenius norm of df/dy divided by the dimension, by Hutchinson's estimator.

    One random direction $\varepsilon$ is drawn per solve and held fixed during it; the mean over
    draws of $|\varepsilon^\top J|^2$ is the squared norm. Needs `key=`.

    **Arguments:**

    - `noise`: the distribution of the direction, `"rademacher"` or `"gaussian"`. By default it is
        that of the vector field's own direction, if the two can be shared, and else
        `"rademacher"`.
    - `form`: `"vjp"` for $\varepsilon^\top J$, as RNODE's paper has it and flows share it with
        their trace, or `"jvp"` for $J \varepsilon$. Both have the same expectation.
    - `where`: which part of the state is charged; all of it by default. The Jacobian is then that
        of this part with respect to itself.

    A vector field with a method `jacobian_product(t, y, args)`, such as that of
    `tn.models.ContinuousFlow`, shares its product, which then costs nothing. The product is used
    if it is that of the charged part, and its direction has the distribution that is asked for.
    """

    noise: str | None = eqx.field(static=True, default=None, kw_only=True)
    form: str = eqx.field(static=True, default="vjp", kw_only=True)
    where: Callable[[Y], Any] = eqx.field(
        static=True, default=everything, kw_only=True, converter=as_selection
    )

    def __check_init__(self):
        if self.noise is not None:
            check_noise(self.noise)
        if self.form not in FORMS:
            raise ValueError(f"`form` must be one of {list(FORMS)}, got {self.form!r}.")

    def init(self, y0: Y, args: Args, *, key: PRNGKeyArray | None = None) -> Any:
        """The random direction, a pytree like the state."""
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
        noise = self.noise or "rademacher"
        directions = [draw_direction(noise, *pair) for pair in zip(leaves, keys, strict=True)]
        return jax.lax.stop_gradient(treedef.unflatten(directions))

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: Any
    ) -> tuple[Y, Any]:
        """The slope, and the mean square of the product of Jacobian and direction."""
        if (shared := self._shared(vector_field, t, y, args)) is not None:
            return shared.slope, mean_square(jtu.tree_leaves(shared.product))

        # Only the charged part is differentiated: the divergence of a flow would be expensive.
        def charged(y):
            slope = vector_field(t, y, args)
            return self.where(slope), slope

        if self.form == "vjp":
            _, transpose, slope = jax.vjp(charged, y, has_aux=True)
            (product,) = transpose(self.where(state))
            return slope, mean_square(select(self.where, product))
        direction = _mask(self.where, state)
        _, product, slope = jax.jvp(charged, (y,), (direction,), has_aux=True)
        return slope, mean_square(select(everything, product))

    def _shared(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args
    ) -> SharedProduct | None:
        """The vector field's own product, if it is what is to be charged."""
        # The solve hands over the method of a term; the user's vector field is within.
        term = getattr(vector_field, "__self__", None)
        field = term.vector_field if isinstance(term, dfx.ODETerm) else vector_field
        if self.form != "vjp" or not isinstance(field, HasJacobianProduct):
            return None
        shared = field.jacobian_product(t, y, args)
        if shared is None or self.noise not in (None, shared.noise):
            return None
        # `where` is an arbitrary function. Selecting whole leaves, it returns the same objects.
        parts = [jtu.tree_leaves(tree) for tree in (self.where(y), shared.part)]
        return shared if list(map(id, parts[0])) == list(map(id, parts[1])) else None


def _mask(where: Callable[[Y], Any], direction: Y) -> Y:
    """The direction, with zeros where `where` does not look."""
    # The transpose of a selection puts what was selected back into its place.
    part, put_back = jax.vjp(where, direction)
    return put_back(part)[0]
