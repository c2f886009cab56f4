# %% [markdown]
# # A budget
#
# How `tn.Budget` finds the weight, what it says about itself, and what happens if a budget is too large or too small. The model is a path in the plane that has to hit some targets.

# %%
import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import optax

import taynode as tn


starts = jr.normal(jr.key(0), (64, 2))
targets = jnp.stack([jnp.sin(3 * starts[:, 0]), starts[:, 0] * starts[:, 1]], axis=1)


def objective(mlp, weight, key):
    sol = tn.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: jax.vmap(mlp)(y)),
        dfx.Tsit5(),
        t0=0.0,
        t1=1.0,
        dt0=None,
        y0=starts,
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5),
        regularizer=tn.TotalDerivative(order=3),
        quadrature=tn.Sampled(batch_axis=0),
        key=key,
    )
    loss, penalty = jnp.mean((sol.ys[-1] - targets) ** 2), sol.stats["penalty"]
    return loss + weight * penalty, dict(loss=loss, penalty=penalty, nfe=sol.stats["nfe"])


# %% [markdown]
# Weights are state machines. `weight(state)` is the present weight, `weight.update(state, nfe=..., loss=..., penalty=...)` the next state. Both work inside of `jax.jit`.


# %%
@eqx.filter_jit
def step(mlp, opt_state, weight, state, key):
    gradient, measured = eqx.filter_grad(objective, has_aux=True)(mlp, weight(state), key)
    updates, opt_state = optim.update(gradient, opt_state)
    state = weight.update(state, **measured)
    return eqx.apply_updates(mlp, updates), opt_state, state, measured


optim = optax.adam(1e-2)


def train(budget, num_steps=200):
    mlp = eqx.nn.MLP(2, 2, 16, 2, jnp.tanh, key=jr.key(1))
    opt_state = optim.init(eqx.filter(mlp, eqx.is_inexact_array))
    weight = tn.Budget(nfe=budget)
    state, rows = weight.init(), []
    for key in jr.split(jr.key(2), num_steps):
        mlp, opt_state, state, measured = step(mlp, opt_state, weight, state, key)
        rows.append((int(measured["nfe"]), float(weight(state)), float(measured["loss"])))
    return rows, weight.status(state)


# %%
courses = {budget: train(budget) for budget in (1000, 44)}
for budget, (_, status) in courses.items():
    print(f"budget {budget}: {status}")

# %%
figure, axes = plt.subplots(1, 3, figsize=(8, 3))
for budget, (rows, _) in courses.items():
    for axis, column in zip(axes, zip(*rows, strict=True), strict=True):
        axis.plot(column, label=f"budget {budget}")
for axis, name in zip(axes, ("evaluations", "weight", "loss"), strict=True):
    axis.set(xlabel="step", title=name)
axes[2].set_yscale("log")
axes[0].legend(frameon=False)
figure.tight_layout()

# %% [markdown]
# The weight is 0 while the budget is not exceeded, so a large budget costs nothing. It rises in small steps afterwards, and falls when there are fewer evaluations than allowed.
#
# ## A budget that cannot be reached
#
# A solve by Tsit5 takes at least one step of six evaluations, and two for the first step. A budget of 5 is out of reach. Then the weight rises until nothing falls any more, goes back to where it last helped, and the status says so:

# %%
weight = tn.Budget(nfe=5)


@jax.jit
def pretend(state, _):  # a solver that takes 14 evaluations at least
    nfe = 14.0 + 30.0 / (1.0 + 1e3 * weight(state))
    return weight.update(state, nfe=nfe, loss=jnp.float32(1.0), penalty=jnp.float32(1.0)), None


state, _ = jax.lax.scan(pretend, weight.init(), length=2500)
print(weight.status(state))

# %% [markdown]
# ## The evaluations that count
#
# `nfe=` is what you measure: those of the training solve, as above, or those of single samples with the solver and tolerance of use. Pass the latter every now and then, and `loss` and `penalty` in each step; steps without `nfe` are fine. `weight.is_due(state)` says when a measurement is of use.
