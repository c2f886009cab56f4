"""A known equation plus a learned term, to a budget of evaluations.

Growth and death of predators and prey are known; a network learns how they meet. This is a
universal differential equation. Run it with `python examples/hybrid.py`: under a minute.
"""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

import taynode as tn


GROWTH, DEATH, END = 1.3, 1.8, 3.0
TIMES = jnp.linspace(0.0, END, 13)[1:]
CONTROLLER = dfx.PIDController(rtol=1e-5, atol=1e-5)


def truth(t, y, args):
    prey, predators = y
    return jnp.stack([(GROWTH - 0.9 * predators) * prey, (0.8 * prey - DEATH) * predators])


class Hybrid(eqx.Module):
    meetings: eqx.nn.MLP

    def __call__(self, t, y, args):
        # Prey die in meetings, and predators thrive on them.
        rates = jnp.array([-1.0, 1.0]) * self.meetings(y)
        return jnp.array([GROWTH, -DEATH]) * y + y[0] * y[1] * rates


def solve(vector_field, y0, **regularized):
    saveat = dfx.SaveAt(ts=TIMES)
    return tn.diffeqsolve(
        dfx.ODETerm(vector_field),
        dfx.Tsit5(),
        0.0,
        END,
        None,
        y0,
        saveat=saveat,
        stepsize_controller=CONTROLLER,
        **regularized,
    )


def observed(num, *, key):
    """Initial states, and noisy observations of their paths."""
    key, noise_key = jr.split(key)
    y0 = jr.uniform(key, (num, 2), minval=0.5, maxval=2.5)
    paths = jax.vmap(lambda y0: solve(truth, y0))(y0)
    ys = jnp.asarray(paths.ys)
    return y0, ys + 0.03 * jr.normal(noise_key, ys.shape), paths.stats["nfe"]


def loss_fn(model, y0, ys, key):
    """The mean square error, the penalty, and the evaluations of each path."""
    each = lambda y0, key: solve(model, y0, regularizer=tn.TotalDerivative(order=3), key=key)
    sol = jax.vmap(each)(y0, jr.split(key, len(y0)))
    return jnp.mean((sol.ys - ys) ** 2), (jnp.mean(sol.stats["penalty"]), sol.stats["nfe"])


def train(weight, num_steps):
    """Train with a `tn.Budget`; the loss and the mean evaluations on new data, and its status."""
    mlp = eqx.nn.MLP(2, 2, 32, 2, jax.nn.softplus, jax.nn.sigmoid, key=jr.key(0))
    model, (y0, ys, _) = Hybrid(mlp), observed(32, key=jr.key(1))
    optim = optax.adam(optax.cosine_decay_schedule(1e-2, num_steps))
    opt_state, state = optim.init(eqx.filter(model, eqx.is_inexact_array)), weight.init()

    @eqx.filter_jit
    def step(model, opt_state, state, key):
        def objective(model):
            loss, (penalty, nfe) = loss_fn(model, y0, ys, key)
            return loss + weight(state) * penalty, (loss, penalty, nfe)

        gradient, (loss, penalty, nfe) = eqx.filter_grad(objective, has_aux=True)(model)
        state = weight.update(state, nfe=nfe, loss=loss, penalty=penalty)
        updates, opt_state = optim.update(gradient, opt_state)
        return eqx.apply_updates(model, updates), opt_state, state

    for key in jr.split(jr.key(2), num_steps):
        model, opt_state, state = step(model, opt_state, state, key)
    y0, ys, _ = observed(128, key=jr.key(3))
    loss, (_, nfe) = eqx.filter_jit(loss_fn)(model, y0, ys, jr.key(4))
    return float(loss), float(jnp.mean(nfe)), weight.status(state)


def main(num_steps=300, budgets=(1000, 70)):
    """Train to some budgets, of which the first is more than the model needs."""
    exact = observed(128, key=jr.key(3))[2]
    print(f"the true equation: {jnp.mean(exact):.1f} evaluations")
    for budget in budgets:
        loss, nfe, status = train(tn.Budget(budget), num_steps)
        print(f"budget {budget:4}: {nfe:.1f} evaluations, test loss {loss:.5f}. {status}")


if __name__ == "__main__":
    main()
