"""The latent ODE of diffrax's documentation, trained without and with a budget of evaluations.

Each series is seen at times of its own, so each is solved alone, under `jax.vmap`. Run it with
`python examples/latent_ode.py`: a minute.
"""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

import taynode as tn


NUM_TIMES, SIZE = 20, 16


def series(num, *, key):
    """Damped oscillations at irregular times: the times, and two values at each."""
    start_key, end_key, time_key = jr.split(key, 3)
    ends = 2 + jr.uniform(end_key, (num, 1))
    times = jnp.sort(ends * jr.uniform(time_key, (num, NUM_TIMES)))
    matrix = jnp.array([[-0.1, 1.3], [-1.0, -0.1]])
    starts = jr.normal(start_key, (num, 2))
    at = jax.vmap(jax.vmap(lambda t: jax.scipy.linalg.expm(t * matrix)))(times - times[:, :1])
    return times, jnp.einsum("stij,sj->sti", at, starts)


class LatentODE(eqx.Module):
    """A recurrent encoder, a latent path, and a decoder of its states."""

    cell: eqx.nn.GRUCell
    to_latent: eqx.nn.Linear
    to_state: eqx.nn.MLP
    field: eqx.nn.MLP
    to_data: eqx.nn.Linear

    def __init__(self, *, key):
        keys = jr.split(key, 5)
        self.cell = eqx.nn.GRUCell(3, SIZE, key=keys[0])
        self.to_latent = eqx.nn.Linear(SIZE, 2 * SIZE, key=keys[1])
        self.to_state = eqx.nn.MLP(SIZE, SIZE, SIZE, 2, key=keys[2])
        softplus, tanh = jax.nn.softplus, jnp.tanh
        self.field = eqx.nn.MLP(SIZE, SIZE, SIZE, 2, softplus, tanh, key=keys[3])
        self.to_data = eqx.nn.Linear(SIZE, 2, key=keys[4])

    def __call__(self, times, values, key):
        """The loss of a series, its penalty, and the evaluations of its solve."""
        draw_key, solve_key = jr.split(key)
        seen = jnp.concatenate([times[:, None], values], axis=1)
        last, _ = jax.lax.scan(
            lambda hidden, x: (self.cell(x, hidden), None), jnp.zeros(SIZE), seen, reverse=True
        )
        mean, log_std = jnp.split(self.to_latent(last), 2)
        latent = mean + jnp.exp(log_std) * jr.normal(draw_key, (SIZE,))
        sol = tn.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: self.field(y)),
            dfx.Tsit5(),
            t0=times[0],
            t1=times[-1],
            dt0=None,
            y0=self.to_state(latent),
            saveat=dfx.SaveAt(ts=times),
            stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5),
            regularizer=tn.TotalDerivative(order=3),
            key=solve_key,
        )
        predicted = jax.vmap(lambda y: self.to_data(y))(sol.ys)
        misfit = 0.5 * jnp.sum((predicted - values) ** 2)
        divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(2 * log_std) - 2 * log_std - 1)
        return misfit + divergence, sol.stats["penalty"], sol.stats["nfe"]


def losses(model, data, key):
    """Means over series, and the evaluations of each."""
    loss, penalty, nfe = jax.vmap(model)(*data, jr.split(key, len(data[0])))
    return {"loss": jnp.mean(loss), "penalty": jnp.mean(penalty), "nfe": nfe}


def train(weight, num_steps, *, seed=0):
    """Loss and evaluations on new series, after training with a weight of the penalty."""
    model_key, data_key, test_key, key = jr.split(jr.key(seed), 4)
    model, data = LatentODE(key=model_key), series(4096, key=data_key)
    optim = optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))
    opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, opt_state, state, data, key):
        def objective(model):
            found = losses(model, data, key)
            return found["loss"] + weight(state) * found["penalty"], found

        gradient, found = eqx.filter_grad(objective, has_aux=True)(model)
        updates, opt_state = optim.update(gradient, opt_state)
        return eqx.apply_updates(model, updates), opt_state, weight.update(state, **found)

    state = weight.init()
    for i in range(num_steps):
        rows = jr.randint(jr.fold_in(data_key, i), (128,), 0, 4096)
        batch = data[0][rows], data[1][rows]
        model, opt_state, state = step(model, opt_state, state, batch, jr.fold_in(key, i))
    found = eqx.filter_jit(losses)(model, series(2048, key=test_key), key)
    return found["loss"], jnp.mean(found["nfe"])


def main(num_steps=600, budgets=(30,)):
    """Train without a penalty, and to each budget."""
    for name, weight in [
        ("no budget", tn.weights.Constant(0.0)),
        *((f"budget {budget}", tn.Budget(budget)) for budget in budgets),
    ]:
        loss, nfe = train(weight, num_steps)
        print(f"{name}: test loss {loss:.2f}, {nfe:.1f} evaluations for each series")


if __name__ == "__main__":
    main()
