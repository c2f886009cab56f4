"""The size of the noise of a stochastic equation."""

from typing import Any

import equinox as eqx
import jax.tree_util as jtu
from jaxtyping import PyTree

from .._types import Args, Rate, RealScalarLike, VectorField, Y
from ..terms import noise_of, variances
from .base import AbstractPartRegularizer, mean, Setting


class DiffusionNorm(AbstractPartRegularizer):
    r"""The squared norm of the diffusion of a stochastic equation, divided by the dimension.

    For dy = f dt + g dW it is $\mathrm{tr}(g g^T) / d$, the variance that noise adds to an element
    of the state per unit of time, in the mean over elements. Adaptive solvers make small steps
    where noise is large.

    **Arguments:**

    - `where`: a function that selects the part of the state whose noise to penalize; by default all
        of it.
    """

    noise: tuple[Any, ...] | None = eqx.field(default=None, kw_only=True, repr=False)

    def in_solve(self, setting: Setting) -> "DiffusionNorm":
        """Know the diffusion."""
        noise = tuple(noise_of(setting.terms))
        if not noise:
            raise TypeError(
                "`DiffusionNorm` needs a stochastic equation: pass `terms=MultiTerm("
                "ODETerm(drift), ControlTerm(diffusion, path))` with a Brownian path."
            )
        return DiffusionNorm(where=self.where, noise=noise)

    def rate(
        self, vector_field: VectorField, t: RealScalarLike, y: Y, args: Args, state: PyTree
    ) -> tuple[Y, Rate]:
        """Compute the drift, and the mean variance per unit of time."""
        del state
        if self.noise is None:
            raise ValueError("`DiffusionNorm` needs a solve: pass it to `tn.diffeqsolve`.")
        each = [variances(term, t, y, args) for term in self.noise]
        total = jtu.tree_map(lambda *v: sum(v[1:], v[0]), *each)
        return vector_field(t, y, args), mean(self.where(total))
