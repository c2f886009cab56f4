"""Train a neural ODE to a budget of evaluations, on diffrax and optax: nobody chooses a weight.

Two interleaved half moons are taken apart by a flow. Run it with `python examples/budget.py`: two
minutes.
"""

import argparse

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

import taynode as tn


def half_moons(num_samples, *, key):
    """Points of two half moons with some noise, and 1 or -1 for the moon they belong to."""
    angle_key, noise_key = jr.split(key)
    sign = 1.0 - 2.0 * (jnp.arange(num_samples) % 2)
    angle = jr.uniform(angle_key, (num_samples,), maxval=jnp.pi)
    upper = jnp.stack([jnp.cos(angle) - 0.5, jnp.sin(angle) - 0.25], axis=1)
    return sign[:, None] * upper + 0.1 * jr.normal(noise_key, (num_samples, 2)), sign


def loss_fn(mlp, points, sign, key):
    """The loss, the penalty and the evaluations of each sample."""

    def solve(y0, key):
        return tn.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: mlp(y)),
            dfx.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=None,
            y0=y0,
            stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5),
            regularizer=tn.TotalDerivative(order=3),
            key=key,
        )

    sol = jax.vmap(solve)(points, jr.split(key, len(points)))
    loss = jnp.mean(jax.nn.softplus(-sign * sol.ys[:, -1, 0]))
    return loss, (jnp.mean(sol.stats["penalty"]), sol.stats["nfe"])


def train(weight, num_steps, *, seed=0):
    """Train with a `tn.Budget`; its status, and loss and evaluations per sample on new data."""
    model_key, data_key, test_key, key = jr.split(jr.key(seed), 4)
    mlp = eqx.nn.MLP(2, 2, 32, 2, jax.nn.softplus, key=model_key)
    optim = optax.adam(optax.cosine_decay_schedule(3e-2, num_steps))
    opt_state = optim.init(eqx.filter(mlp, eqx.is_inexact_array))
    data = half_moons(128, key=data_key)

    @eqx.filter_jit
    def step(mlp, opt_state, state, key):
        def objective(mlp):
            loss, (penalty, nfe) = loss_fn(mlp, *data, key)
            return loss + weight(state) * penalty, (loss, penalty, nfe)

        gradient, (loss, penalty, nfe) = eqx.filter_grad(objective, has_aux=True)(mlp)
        state = weight.update(state, nfe=nfe, loss=loss, penalty=penalty)
        updates, opt_state = optim.update(gradient, opt_state)
        return eqx.apply_updates(mlp, updates), opt_state, state

    state = weight.init()
    for step_key in jr.split(key, num_steps):
        mlp, opt_state, state = step(mlp, opt_state, state, step_key)
    loss, (_, nfe) = eqx.filter_jit(loss_fn)(mlp, *half_moons(512, key=test_key), key)
    return weight.status(state), float(loss), float(jnp.mean(nfe))


def main(num_steps=300, budgets=(1000, 40, 30)):
    """Train to some budgets, of which the first is more than the model needs."""
    for budget in budgets:
        status, loss, nfe = train(tn.Budget(budget), num_steps)
        print(f"budget {budget:4}: {nfe:6.1f} evaluations, test loss {loss:.4f}. {status}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300, help="training steps")
    main(parser.parse_args().steps)
