"""Flow matching on a checkerboard: a penalty at the training points makes samples cheap.

Training makes no solve, and neither does the penalty. Run it with
`python examples/flow_matching.py`: under a minute.
"""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

import taynode as tn


def checkerboard(num, *, key):
    """Points of the black squares, between -2 and 2."""
    x_key, y_key, side_key = jr.split(key, 3)
    x = jr.uniform(x_key, (num,), minval=-2.0, maxval=2.0)
    y = jr.uniform(y_key, (num,)) - 2.0 * jr.randint(side_key, (num,), 0, 2)
    return jnp.stack([x, y + jnp.floor(x) % 2], axis=1)


def energy_distance(x, y):
    between = lambda a, b: jnp.mean(jnp.linalg.norm(a[:, None] - b + 1e-12, axis=-1))
    return 2 * between(x, y) - between(x, x) - between(y, y)


def train(weight, num_steps):
    """A flow, trained with a weight of R_2."""
    field = tn.models.TimeMLP((2, 96, 96, 96, 2), jax.nn.silu, key=jr.key(0))
    flow, matching = tn.models.ContinuousFlow(field, (2,)), tn.models.FlowMatching()
    regularizer = tn.TotalDerivative(order=2) if weight else None
    optim = optax.adam(optax.cosine_decay_schedule(3e-3, num_steps))
    opt_state = optim.init(eqx.filter(flow, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(flow, opt_state, key):
        data_key, key = jr.split(key)

        def objective(flow):
            loss, penalty = matching(flow, checkerboard(512, key=data_key), regularizer, key=key)
            return loss if penalty is None else loss + weight * penalty

        updates, opt_state = optim.update(eqx.filter_grad(objective)(flow), opt_state)
        return eqx.apply_updates(flow, updates), opt_state

    for key in jr.split(jr.key(1), num_steps):
        flow, opt_state = step(flow, opt_state, key)
    return flow


@eqx.filter_jit
def judge(flow):
    """Evaluations of a sample at a tolerance of 1e-5, and distances for that and for few steps."""
    noise, data = jr.normal(jr.key(2), (1000, 2)), checkerboard(1000, key=jr.key(3))
    alone = jax.vmap(lambda z: flow.from_base(z[None])[1].stats["nfe"])(noise[:200])
    solves = None, *(tn.models.Solve(dfx.Euler(), num_steps=n) for n in (4, 8))
    distances = [energy_distance(flow.from_base(noise, solve)[0], data) for solve in solves]
    return jnp.mean(alone), distances


def main(num_steps=1500):
    """Train without and with the penalty."""
    for weight in (0.0, 0.1):
        nfe, (adaptive, four, eight) = judge(train(weight, num_steps))
        print(
            f"R_2, weight {weight:3}: {nfe:.1f} evaluations, energy distance {adaptive:.4f}; "
            f"with 4 Euler steps {four:.4f}, with 8 {eight:.4f}"
        )


if __name__ == "__main__":
    main()
