"""Make a trained neural ODE cheap, on diffrax and optax.

A flow in the plane takes a disc out of the ring around it, which it cannot do without haste. Run it
with `python examples/ease.py`: three minutes.
"""

import argparse

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

import taynode as tn


def disc_and_ring(step, key):
    """A batch: points, and 1 or -1 for the ring or the disc. There is no end of them."""
    points = jr.normal(key, (128, 2))
    return points, jnp.where(jnp.sum(points**2, axis=1) > 1.4, 1.0, -1.0)


def loss_fn(mlp, batch, key, penalized=True):
    """The loss, and the solutions with their penalties and evaluations."""

    def solve(y0, key):
        return tn.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: mlp(y)),
            dfx.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=None,
            y0=y0,
            stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5),
            regularizer=tn.TotalDerivative(order=3) if penalized else None,
            key=key,
        )

    points, sign = batch
    sol = jax.vmap(solve)(points, jr.split(key, len(points)))
    return jnp.mean(jax.nn.softplus(-sign * sol.ys[:, -1, 0])), sol


def train(num_steps, *, key):
    """A model that is trained as usual, without a penalty."""
    mlp = eqx.nn.MLP(2, 2, 32, 2, jax.nn.softplus, key=key)
    optim = optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))
    opt_state = optim.init(eqx.filter(mlp, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(mlp, opt_state, key):
        loss = lambda mlp: loss_fn(mlp, disc_and_ring(0, key), key, penalized=False)[0]
        gradient = eqx.filter_grad(loss)(mlp)
        updates, opt_state = optim.update(gradient, opt_state)
        return eqx.apply_updates(mlp, updates), opt_state

    for step_key in jr.split(key, num_steps):
        mlp, opt_state = step(mlp, opt_state, step_key)
    return mlp


def main(num_steps=600, nfe=40):
    """Train a model, and make it cheap in half as many steps."""
    model_key, valid_key, ease_key = jr.split(jr.key(0), 3)
    front = tn.ease(
        train(num_steps, key=model_key),
        loss_fn,
        disc_and_ring,
        disc_and_ring(0, valid_key),
        optax.adam(1e-2),
        steps=num_steps // 2,
        key=ease_key,
        nfe=nfe,
        on_progress=print,
    )
    print(front)
    return front


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600, help="training steps")
    parser.add_argument("--nfe", type=float, default=40, help="evaluations to allow")
    args = parser.parse_args()
    main(args.steps, args.nfe)
