"""B: the Frobenius norm of the Jacobian, estimated with one random direction."""

from typing import NamedTuple, Protocol, runtime_checkable

import diffrax as dfx
import equinox as eqx
import jax
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import PRNGKeyArray

from .._types import Args, Arrays, Rate, RealScalarLike, VectorField, Y
from ..noise import check_noise, draw_direction
from .base import AbstractPartRegularizer, mean_square


FORMS = ("vjp", "jvp")


class SharedProduct(NamedTuple):
    r"""A product $\varepsilon^\top J$ that a vector field computes for its own use.

    - `slope`: dy/dt of the whole state.
    - `part`: the part of the state that the Jacobian is of: leaves of `y`, as the same objects.
    - `product`: the product, a pytree like `part`.
    - `noise`: the distribution of $\varepsilon$.
    """

    slope: Y
    part: Arrays
    product: Arrays
    noise: str


@runtime_checkable
class HasJacobianProduct(Protocol):
    """A vector field that computes a random direction times its Jacobian anyway, as flows do."""

    def jacobian_product(self, t: RealScalarLike, y: Y, args: Args) -> SharedProduct | None:
        """Compute the slope and the product, or return `None` if there is no product to share."""
        ...


class JacobianFrobenius(AbstractPartRegularizer):
    r"""The squared Frobenius norm of df/dy divided by the dimension, by Hutchinson's estimator.

    One random direction $\varepsilon$ is drawn per solve and held fixed during it. The mean of
    $|\varepsilon^\top J|^2$ over draws is the squared norm. Needs `key=`.

    **Arguments:**

    - `noise`: the distribution of the direction, `"rademacher"` or `"gaussian"`. By default, that
        of the direction shared by the vector field (see below), or else `"rademacher"`.
    - `form`: `"vjp"` for $\varepsilon^\top J$, as in RNODE's paper, or `"jvp"` for
        $J \varepsilon$. Both have the same expectation if the state is real, and if it is complex
        and the vector field is holomorphic.
    - `where`: a function that selects the part of the state to penalize; by default all of it. The
        Jacobian is that of this part with respect to itself.

    A vector field with a method `jacobian_product(t, y, args)`, such as that of
    `tn.models.ContinuousFlow`, shares its product, which then costs nothing. The product is used if
    it is that of the penalized part and its direction has the distribution `noise`.
    """

    noise: str | None = eqx.field(static=True, default=None, kw_only=True)
    form: str = eqx.field(static=True, default="vjp", kw_only=True)

    def __check_init__(self):
        if self.noise is not None:
            check_noise(self.noise)
        if self.form not in FORMS:
            raise ValueError(f"`form` must be one of {list(FORMS)}, got {self.form!r}.")

    def init(self, y0: Y, args: Args, *, key: PRNGKeyArray | None = None) -> Y:
        """Draw the random direction, a pytree like the state."""
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
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: Y
    ) -> tuple[Y, Rate]:
        """Compute the slope, and the mean square of the product of Jacobian and direction."""
        if (shared := self._shared(vector_field, t, y, args)) is not None:
            return shared.slope, mean_square(shared.product)

        # Only the penalized part is differentiated: the divergence of a flow would be expensive.
        def penalized(y):
            slope = vector_field(t, y, args)
            return self.where(slope), slope

        if self.form == "vjp":
            _, transpose, slope = jax.vjp(penalized, y, has_aux=True)
            (product,) = transpose(self.where(state))
            return slope, mean_square(self.where(product))
        # The transpose of a selection puts the selected part back, with zeros elsewhere.
        part, put_back = jax.vjp(self.where, state)
        (direction,) = put_back(part)
        _, product, slope = jax.jvp(penalized, (y,), (direction,), has_aux=True)
        return slope, mean_square(product)

    def _shared(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args
    ) -> SharedProduct | None:
        """The product of the vector field, if it is the one that this regularizer needs."""
        # The solve passes a method of the term that holds the user's vector field.
        term = getattr(vector_field, "__self__", None)
        field = term.vector_field if isinstance(term, dfx.ODETerm) else vector_field
        if self.form != "vjp" or not isinstance(field, HasJacobianProduct):
            return None
        shared = field.jacobian_product(t, y, args)
        if shared is None or self.noise not in (None, shared.noise):
            return None
        # `where` is an arbitrary function. If it selects whole leaves, it returns the same objects.
        parts = [jtu.tree_leaves(tree) for tree in (self.where(y), shared.part)]
        return shared if list(map(id, parts[0])) == list(map(id, parts[1])) else None
