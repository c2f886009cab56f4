"""Flow matching: a flow that is learned from points between data and noise, without any solve."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from .._types import Rate, RealScalar
from ..regularizers import AbstractRegularizer
from ..regularizers.at_point import penalty_at
from ..regularizers.base import Setting
from ..regularizers.combine import combine
from .flow import ContinuousFlow, PerSample, Samples
from .solve import Solve


# From a key, a number of times between 0 and 1.
TimeDensity: TypeAlias = Callable[[PRNGKeyArray, int], Float[Array, " num"]]
# From data and noise, the noise in another order.
Coupling: TypeAlias = Callable[[Samples, Samples], Samples]


def uniform_times(key: PRNGKeyArray, num: int) -> Float[Array, " num"]:
    """Times between 0 and 1, one in each of `num` equal intervals, in a random order.

    Each of them is uniform. Together they have less noise than independent ones.
    """
    order_key, key = jr.split(key)
    strata = jr.permutation(order_key, jnp.arange(num, dtype=float))
    return (strata + jr.uniform(key, (num,), strata.dtype)) / num


def independent(x: Samples, noise: Samples) -> Samples:
    """Pairs data and noise at random."""
    del x
    return noise


def optimal(x: Samples, noise: Samples) -> Samples:
    """Pairs data and noise so that the sum of their squared distances is least, within a batch.

    Paths of samples then cross less. The time grows with the third power of the batch. This needs
    `optax`.
    """
    from optax.assignment import hungarian_algorithm

    a, b = (z.reshape(len(z), -1) for z in (x, noise))
    # Squares of single points are the same for all pairings.
    rows, columns = hungarian_algorithm(-a @ b.T)
    return noise[columns[jnp.argsort(rows)]]


class Matched(NamedTuple):
    """The result of `FlowMatching`.

    - `loss`: the mean square distance of the velocity from that of straight paths, by element.
    - `penalty`: the penalty, a pytree like the regularizer, or `None`.
    """

    loss: RealScalar
    penalty: Rate | None


class FlowMatching(eqx.Module):
    """The loss of flow matching, with a penalty at the same points.

    Data is at time 0 and noise at time 1, as in `ContinuousFlow`. The point of a pair at time t is
    `(1 - t) * data + t * noise`, and its velocity `noise - data`.

    A penalty needs derivatives of the vector field, which cost more than its value. Their first
    part is that value, so a penalty of order K costs K - 1 evaluations more at each point that it
    is evaluated at. `penalized_fraction` lowers this cost.

    ```python
    loss, penalty = tn.models.FlowMatching()(flow, x, tn.TotalDerivative(order=2), key=key)
    objective = loss + weight * penalty
    ```

    Reference: Lipman, Chen, Ben-Hamu, Nickel and Le, Flow Matching for Generative Modeling, ICLR
    2023.

    **Arguments:**

    - `coupling`: how data and noise are paired: `independent` or `optimal`, or a function of your
        own.
    - `times`: how times are drawn: `uniform_times`, or a function of your own.
    - `penalized_fraction`: the share of the batch at whose points the penalty is evaluated.
    """

    coupling: Coupling = eqx.field(static=True, default=independent)
    times: TimeDensity = eqx.field(static=True, default=uniform_times)
    penalized_fraction: float = eqx.field(static=True, default=0.25)

    def __check_init__(self):
        if not 0 < (given := self.penalized_fraction) <= 1:
            raise ValueError(f"`penalized_fraction` must be above 0 and at most 1, got {given!r}.")

    def __call__(
        self,
        flow: ContinuousFlow,
        x: Samples,
        regularizer: PyTree[AbstractRegularizer] | None = None,
        *,
        noise: Samples | None = None,
        key: PRNGKeyArray,
    ) -> Matched:
        """Compute the loss of a batch, and the penalty.

        **Arguments:**

        - `flow`: the flow.
        - `x`: the data, with samples along the first axis.
        - `regularizer`: a regularizer of the samples, or any pytree of them.
        - `noise`: the noise that each sample belongs to, as in reflow; by default new noise.
        - `key`: a random key for times, noise and the penalty.
        """
        noise_key, time_key, key = jr.split(key, 3)
        if noise is None:
            noise = self.coupling(x, jr.normal(noise_key, x.shape, x.dtype))
        times = self.times(time_key, len(x)).astype(x.dtype)
        along = times.reshape(-1, *[1] * (x.ndim - 1))
        points, target = (1 - along) * x + along * noise, noise - x
        number = max(1, round(self.penalized_fraction * len(x))) if regularizer is not None else 0
        plain = _velocities(flow, times[number:], points[number:])
        if regularizer is None:
            return Matched(jnp.mean((plain - target) ** 2), None)
        keys = jr.split(key, number)
        combined = combine(dfx.ODETerm(flow.vector_field), regularizer)
        combined = combined.in_solve(Setting(0.0, 1.0))

        def penalized(t: RealScalar, z: Array, key: PRNGKeyArray) -> tuple[Array, Rate]:
            velocity, rate = penalty_at(combined, flow.vector_field, t, z[None], key=key)
            return velocity[0], rate

        first, rates = jax.vmap(penalized)(times[:number], points[:number], keys)
        velocities = jnp.concatenate([first, plain])
        integral = jtu.tree_map(lambda rate: jnp.mean(rate, axis=0), rates)
        penalty = combined.finalize(integral, 0.0, 1.0)
        return Matched(jnp.mean((velocities - target) ** 2), penalty)


def generated_pairs(
    flow: ContinuousFlow, num: int, solve: Solve | None = None, *, key: PRNGKeyArray
) -> tuple[Samples, Samples, dfx.Solution]:
    """Samples of a flow, the noise that they come from, and the solution.

    Reflow trains a flow on the straight lines between its own pairs:
    ```python
    x, noise, _ = tn.models.generated_pairs(flow, 10_000, key=key)
    loss, _ = tn.models.FlowMatching()(flow, x, noise=noise, key=another_key)
    ```

    Reference: Liu, Gong and Liu, Flow Straight and Fast, ICLR 2023.
    """
    noise = jr.normal(key, (num, *flow.event_shape), flow.dtype)
    x, solution = flow.from_base(noise, solve)
    return x, noise, solution


def _velocities(flow: ContinuousFlow, times: PerSample, points: Samples) -> Samples:
    """The velocity at each point, at its own time."""
    return jax.vmap(lambda t, z: flow.vector_field(t, z[None], None)[0])(times, points)
