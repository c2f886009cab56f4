"""A second-order system, q'' = -grad V(q), whose potential is learned from orbits, to a budget.

The state is the pair of position and velocity. A network of the distance is the potential, so the
force is conservative. Run it with `python examples/orbit.py`: under a minute.
"""

from collections.abc import Callable

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

import taynode as tn


END = 4.0
TIMES = jnp.linspace(0.0, END, 13)[1:]
CONTROLLER = dfx.PIDController(rtol=1e-5, atol=1e-5)


class Motion(eqx.Module):
    """First order in the pair of position and velocity."""

    potential: Callable

    def __call__(self, t, y, args):
        position, velocity = y
        return velocity, -jax.grad(self.potential)(position)


class Gravity(eqx.Module):
    def __call__(self, position):
        return -1 / jnp.sqrt(jnp.sum(position**2))


class Learned(eqx.Module):
    mlp: eqx.nn.MLP

    def __call__(self, position):
        return self.mlp(jnp.sqrt(jnp.sum(position**2)))


def solve(potential, y0, **regularized):
    return tn.diffeqsolve(
        dfx.ODETerm(Motion(potential)),
        dfx.Tsit5(),
        0.0,
        END,
        None,
        y0,
        saveat=dfx.SaveAt(ts=TIMES),
        stepsize_controller=CONTROLLER,
        **regularized,
    )


def orbits(num, *, key):
    """Initial states of orbits that are not quite circles, and their paths."""
    angle_key, speed_key = jr.split(key)
    angle = jr.uniform(angle_key, (num,), maxval=2 * jnp.pi)
    speed = jr.uniform(speed_key, (num,), minval=0.85, maxval=1.15)
    position = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    velocity = speed[:, None] * jnp.stack([-jnp.sin(angle), jnp.cos(angle)], axis=1)
    y0 = position, velocity
    return y0, jax.vmap(lambda y0: solve(Gravity(), y0))(y0)


def loss_fn(potential, y0, positions, key):
    """The error of positions, the penalty on accelerations, and the evaluations of each path."""
    jerk = tn.TotalDerivative(order=3, where=lambda y: y[1])
    each = lambda y0, key: solve(potential, y0, regularizer=jerk, key=key)
    sol = jax.vmap(each)(y0, jr.split(key, len(positions)))
    loss = jnp.mean((sol.ys[0] - positions) ** 2)
    return loss, (jnp.mean(sol.stats["penalty"]), sol.stats["nfe"])


def train(weight, num_steps):
    """Train with a `tn.Budget`; the loss and the mean evaluations on new orbits, and its status."""
    mlp = eqx.nn.MLP("scalar", "scalar", 32, 2, jnp.tanh, key=jr.key(0))
    model, (y0, exact) = Learned(mlp), orbits(32, key=jr.key(1))
    optim = optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))
    opt_state, state = optim.init(eqx.filter(model, eqx.is_inexact_array)), weight.init()

    @eqx.filter_jit
    def step(model, opt_state, state, key):
        def objective(model):
            loss, (penalty, nfe) = loss_fn(model, y0, exact.ys[0], key)
            return loss + weight(state) * penalty, (loss, penalty, nfe)

        gradient, (loss, penalty, nfe) = eqx.filter_grad(objective, has_aux=True)(model)
        state = weight.update(state, nfe=nfe, loss=loss, penalty=penalty)
        updates, opt_state = optim.update(gradient, opt_state)
        return eqx.apply_updates(model, updates), opt_state, state

    for key in jr.split(jr.key(2), num_steps):
        model, opt_state, state = step(model, opt_state, state, key)
    y0, exact = orbits(128, key=jr.key(3))
    loss, (_, nfe) = eqx.filter_jit(loss_fn)(model, y0, exact.ys[0], jr.key(4))
    return float(loss), float(jnp.mean(nfe)), weight.status(state)


def main(num_steps=300, budgets=(1000, 75)):
    """Train to some budgets, of which the first is more than the model needs."""
    _, exact = orbits(128, key=jr.key(3))
    print(f"gravity itself: {jnp.mean(exact.stats['nfe']):.1f} evaluations")
    for budget in budgets:
        loss, nfe, status = train(tn.Budget(budget), num_steps)
        print(f"budget {budget:4}: {nfe:.1f} evaluations, test loss {loss:.6f}. {status}")


if __name__ == "__main__":
    main()
