"""The augmented system for direct calls of diffrax."""

import diffrax as dfx
import equinox as eqx
import optimistix as optx
from jaxtyping import PRNGKeyArray, PyTree

from .._types import Args, Norm, RealScalarLike, Y
from ..integration.plain import plain
from ..regularizers import AbstractRegularizer
from ..regularizers.combine import combine
from .augmented_state import AugmentedField


def regularized(
    term: dfx.ODETerm,
    regularizer: PyTree[AbstractRegularizer],
    *,
    y0: Y = None,
    args: Args = None,
    key: PRNGKeyArray | None = None,
) -> dfx.ODETerm:
    """The term of the system (y, penalty), for direct calls of diffrax.

    ```python
    term = tn.regularized(dfx.ODETerm(f), tn.TotalDerivative(order=3))
    controller = dfx.PIDController(rtol=1e-5, atol=1e-5, norm=tn.StateNorm())
    solve = functools.partial(dfx.diffeqsolve, stepsize_controller=controller)
    ys, penalty = solve(term, dfx.Tsit5(), 0.0, 1.0, 0.1, (y0, 0.0)).ys
    ```

    **Arguments:**

    - `term`: the term of the plain system.
    - `regularizer`: a regularizer or a pytree of them. The penalty has the same structure.
    - `y0`, `args`, `key`: for regularizers that draw noise, such as `JacobianFrobenius`.
    """
    if not isinstance(term, dfx.ODETerm):
        raise TypeError(
            f"`term` must be an `ODETerm`, got `{type(term).__name__}`. If it is a `ControlTerm`, "
            "pass `term.to_ode()`."
        )
    combined = combine(term, regularizer)
    states = combined.init(y0, args, key=key)
    return dfx.ODETerm(AugmentedField(term, combined, states))


class StateNorm(eqx.Module):
    """A norm without the penalty, for step-size control of `regularized` terms.

    In the backward solve of `diffrax.BacksolveAdjoint` it is the norm of the plain adjoint: the
    state, its cotangent and the cotangents of arguments and terms.

    **Arguments:**

    - `norm`: the norm of the plain system; by default the root mean square, as in diffrax.
    """

    norm: Norm = optx.rms_norm

    def __call__(self, x: PyTree) -> RealScalarLike:
        """Compute the norm of `(y, penalty)`, or of the four parts of its adjoint."""
        if not isinstance(x, tuple) or len(x) not in (2, 4):
            raise TypeError(
                "`StateNorm` is for `tn.regularized` terms, whose state is `(y, penalty)`, got "
                f"`{type(x).__name__}`. `tn.diffeqsolve` needs no special norm."
            )
        if len(x) == 2:
            y, _ = x
            return self.norm(y)
        (y, _), (y_cotangent, _), args_cotangent, term_cotangent = x
        return self.norm((y, y_cotangent, args_cotangent, plain(term_cotangent)))
