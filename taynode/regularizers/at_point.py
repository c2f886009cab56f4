"""The rate of a penalty at points that are known without a solve."""

from typing import Any

import diffrax as dfx
from jaxtyping import PRNGKeyArray

from .._types import Args, Rate, RealScalarLike, VectorField, Y
from ..taylor.solution import check_vector_field
from .combine import combine


def penalty_at(
    regularizer: Any,
    vector_field: VectorField,
    t: RealScalarLike,
    y: Y,
    args: Args = None,
    *,
    key: PRNGKeyArray | None = None,
) -> tuple[Y, Rate]:
    """Compute the velocity and the rate of a penalty at a point, without a solve.

    This is for losses that know points of the path anyway, as in flow matching, where it takes the
    place of the evaluation of the vector field:
    ```python
    penalty_at = functools.partial(tn.penalty_at, tn.TotalDerivative(order=2), vector_field)
    velocity, rate = jax.vmap(penalty_at, in_axes=(0, 0, None))(times, states, model)
    loss = jnp.mean((velocity - target) ** 2) + weight * jnp.mean(rate)
    ```

    **Arguments:**

    - `regularizer`: as for `tn.diffeqsolve`: a regularizer, or any pytree of them.
    - `vector_field`: a function `f(t, y, args)`.
    - `t`, `y`, `args`: the point.
    - `key`: a random key, for regularizers that draw noise.

    **Returns:**

    The velocity dy/dt, and the rate of the penalty, a pytree like `regularizer`. Its mean over
    points that are uniform in time, times the length of the interval, is the penalty of
    `tn.diffeqsolve`. For `tn.ExpectedNFE(..., interval=length)` it is the number of steps, from
    which its method `finalize` computes the number of evaluations.
    """
    check_vector_field(vector_field)
    combined = combine(dfx.ODETerm(vector_field), regularizer)
    state = combined.init(y, args, key=key)
    return combined.rate(vector_field, t, y, args, state)
