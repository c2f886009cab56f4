# %% [markdown]
# # The ten lines, explained
#
# A model is trained twice on the same data: as usual, and with the ten lines that make it cheap. The task: take two interleaved half moons apart.

# %%
import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import optax

import taynode as tn


def half_moons(num, key):
    """Points of two half moons with some noise, and 1 or -1 for the moon they belong to."""
    angle_key, noise_key = jr.split(key)
    sign = 1.0 - 2.0 * (jnp.arange(num) % 2)
    angle = jr.uniform(angle_key, (num,), maxval=jnp.pi)
    upper = jnp.stack([jnp.cos(angle) - 0.5, jnp.sin(angle) - 0.25], axis=1)
    return sign[:, None] * upper + 0.1 * jr.normal(noise_key, (num, 2)), sign


points, sign = half_moons(128, jr.key(0))

# %% [markdown]
# The vector field is a small network. The state is the whole batch, so one matrix product serves all rows, and the batch has one step size.


# %%
def vector_field(t, y, mlp):
    return jax.vmap(mlp)(y)


# %% [markdown]
# Now the solve. **The first changed line** is the prefix: `tn.diffeqsolve` has the signature of `diffrax.diffeqsolve`, and returns a `diffrax.Solution`.
#
# **`regularizer=`** says what is charged: the squared third derivative of the path, which includes that by time. Dopri5 is of order 5; R_3 is a good start for it.
#
# **`quadrature=`** says how the charge is integrated: at a random time, another one for each row of the batch. It is unbiased, and the whole penalty costs about three evaluations of the field.
#
# **`key=`** is for these times. It is another one in each step of training.


# %%
def solve(mlp, y0, key=None, regularizer=None):
    return tn.diffeqsolve(
        dfx.ODETerm(vector_field),
        dfx.Dopri5(),
        t0=0.0,
        t1=1.0,
        dt0=None,
        y0=y0,
        args=mlp,
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5),
        regularizer=regularizer,
        quadrature=tn.Sampled(batch_axis=0),
        key=key,
    )


def loss_of(ys, sign):
    return jnp.mean(jax.nn.softplus(-sign * ys[-1, :, 0]))


# %% [markdown]
# The objective is the loss plus weight times penalty, and **`tn.Budget`** chooses the weight: it measures the evaluations in `stats["nfe"]` and raises the weight while there are too many. It is a small state machine, `init` and `update`, as in optax.


# %%
def train(budget, num_steps=300):
    mlp = eqx.nn.MLP(2, 2, 16, 2, jax.nn.softplus, key=jr.key(1))
    optim = optax.adam(optax.cosine_decay_schedule(2e-2, num_steps))
    opt_state = optim.init(eqx.filter(mlp, eqx.is_inexact_array))
    weight = tn.Budget(nfe=budget)

    @eqx.filter_jit
    def step(mlp, opt_state, state, key):
        @eqx.filter_grad(has_aux=True)
        def gradient_of(mlp):
            sol = solve(mlp, points, key, tn.TotalDerivative(order=3))
            loss, penalty = loss_of(sol.ys, sign), sol.stats["penalty"]
            measured = dict(loss=loss, penalty=penalty, nfe=sol.stats["nfe"])
            return loss + weight(state) * penalty, measured

        gradient, measured = gradient_of(mlp)
        updates, opt_state = optim.update(gradient, opt_state)
        state = weight.update(state, **measured)
        return eqx.apply_updates(mlp, updates), opt_state, state, measured

    state, course = weight.init(), []
    for key in jr.split(jr.key(2), num_steps):
        mlp, opt_state, state, measured = step(mlp, opt_state, state, key)
        course.append((float(measured["loss"]), int(measured["nfe"])))
    return mlp, course, weight.status(state)


# %% [markdown]
# A budget of a million is none: its weight stays 0. So the same function trains both models.

# %%
plain, plain_course, _ = train(budget=1e6)
cheap, cheap_course, status = train(budget=32)
print(status)

# %%
figure, axes = plt.subplots(1, 2)
for course, name in ((plain_course, "without"), (cheap_course, "budget of 32")):
    axes[0].plot([loss for loss, _ in course], label=name)
    axes[1].plot([nfe for _, nfe in course], label=name)
axes[0].set(xlabel="step", ylabel="loss", yscale="log")
axes[1].set(xlabel="step", ylabel="evaluations")
axes[1].axhline(32, color="gray", linestyle=":")
axes[1].legend(frameon=False)

# %% [markdown]
# **Evaluate as the model is used**, without a regularizer, and on new data. Steps and values are those of the training solve, since the penalty never steers the solver.

# %%
new_points, new_sign = half_moons(128, jr.key(3))
for name, mlp in (("without", plain), ("budget", cheap)):
    sol = eqx.filter_jit(solve)(mlp, new_points)
    loss, nfe = loss_of(sol.ys, new_sign), int(sol.stats["nfe"])
    print(f"{name:8} test loss {loss:.4f}, {nfe} evaluations")

# %% [markdown]
# Where next: [a budget](budget.md) shows what the weight does, and [I have a ...](../guides/index.md) has other models. This is one seed of a toy; [Measurements](../measurements.md) has real data and seeds.
