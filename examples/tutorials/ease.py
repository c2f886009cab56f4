# %% [markdown]
# # Ease a trained model
#
# A model is trained already, and slow. `tn.ease` trains it a little longer with a rising penalty, and shows what each evaluation is worth.

# %%
import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

import taynode as tn


def batches(step, key):
    """A batch: points of two half moons, and 1 or -1 for the moon."""
    angle_key, noise_key = jr.split(key)
    sign = 1.0 - 2.0 * (jnp.arange(128) % 2)
    angle = jr.uniform(angle_key, (128,), maxval=jnp.pi)
    upper = jnp.stack([jnp.cos(angle) - 0.5, jnp.sin(angle) - 0.25], axis=1)
    return sign[:, None] * upper + 0.1 * jr.normal(noise_key, (128, 2)), sign


def solve(mlp, points, key, regularizer=None):
    return tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: jax.vmap(mlp)(y)),
        dfx.Tsit5(),
        t0=0.0,
        t1=1.0,
        dt0=None,
        y0=points,
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5),
        regularizer=regularizer,
        quadrature=tn.Sampled(batch_axis=0),
        key=key,
    )


def loss_fn(mlp, batch, key):
    """The loss without a penalty, and the solution with one: what `tn.ease` asks for."""
    points, sign = batch
    sol = solve(mlp, points, key, tn.TotalDerivative(order=3))
    return jnp.mean(jax.nn.softplus(-sign * sol.ys[-1, :, 0])), sol


# %% [markdown]
# First the usual training, which stands for what you have done already.


# %%
def train(num_steps):
    mlp = eqx.nn.MLP(2, 2, 16, 2, jax.nn.softplus, key=jr.key(0))
    optim = optax.adam(optax.cosine_decay_schedule(2e-2, num_steps))
    opt_state = optim.init(eqx.filter(mlp, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(mlp, opt_state, key):
        points, sign = batches(0, key)
        loss = lambda mlp: jnp.mean(jax.nn.softplus(-sign * solve(mlp, points, key).ys[-1, :, 0]))
        updates, opt_state = optim.update(eqx.filter_grad(loss)(mlp), opt_state)
        return eqx.apply_updates(mlp, updates), opt_state

    for key in jr.split(jr.key(1), num_steps):
        mlp, opt_state = step(mlp, opt_state, key)
    return mlp


model = train(400)

# %% [markdown]
# Then `tn.ease`, with the optimizer of the training and a fraction of its steps. Evaluations and losses of the front are those of validation data.

# %%
front = tn.ease(
    model,
    loss_fn,
    batches,
    batches(0, jr.key(2)),
    optax.adam(1e-2),
    steps=300,
    key=jr.key(3),
    nfe=26,
)
print(front)

# %%
front.plot()

# %% [markdown]
# The path from the given model is that of the rising weight. The refitted model had its learning rate decay while a budget kept its evaluations. Pick one by what you can afford:

# %%
cheap = front.at(nfe=28)
print(f"{cheap.nfe:.0f} evaluations instead of {front.given.nfe:.0f}, loss {cheap.loss:.3f}")

# %% [markdown]
# `front.within(0.01)` picks by loss, `within=0.01` in the call searches for such a model, and `path=` makes it continue after a stop. Without labels, `tn.matching(model, predict)` is the loss: [a trained model](../guides/trained-model.md).
