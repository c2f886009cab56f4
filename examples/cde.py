"""A neural CDE, dy = f(y) dX, on spirals at 100 irregular times, solved with few evaluations of f.

Steps across knots at which a derivative of X jumps are rejected often, or less accurate than they
seem. Let X be a smooth spline; then the penalty pays, too. For a control with such jumps, let steps
end at its knots: `at_knots=True`. Run it with `python examples/cde.py`: under a minute.
"""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from scipy.interpolate import CubicSpline

import taynode as tn
from taynode.lab.data import spirals


def hermite(times, values):
    return jax.vmap(lambda x: dfx.backward_hermite_coefficients(times, x))(values)


def natural(times, values):
    pieces = CubicSpline(times, values, axis=1, bc_type="natural").c
    return tuple(jnp.asarray(pieces, "float32").swapaxes(1, 2))


def batch_of(coefficients, seed):
    series = spirals(32, seed=seed)
    times = jnp.asarray(series.times)
    control = lambda c: dfx.CubicInterpolation(times, c)
    return jax.vmap(control)(coefficients(times, jnp.asarray(series.values))), series.labels


def train(coefficients, weight, solve, num_steps):
    model = tn.models.NeuralCDE(3, 8, 32, 2, at_knots=False, key=jr.key(0))
    optim = optax.adam(1e-2)
    opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, opt_state, batch, key):
        def objective(model):
            logits, sol = model(batch[0], solve, key=key)
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch[1]).mean()
            return loss + weight * sol.stats["penalty"], (loss, sol.stats["nfe"])

        gradient, (loss, nfe) = eqx.filter_grad(objective, has_aux=True)(model)
        updates, opt_state = optim.update(gradient, opt_state)
        return eqx.apply_updates(model, updates), opt_state, loss, nfe

    train_batch, test_batch = (batch_of(coefficients, seed) for seed in (0, 1))
    for key in jr.split(jr.key(1), num_steps):
        model, opt_state, _, _ = step(model, opt_state, train_batch, key)
    _, _, loss, nfe = step(model, opt_state, test_batch, jr.key(2))
    return float(loss), int(nfe)


def main(num_steps=100):
    controller = dfx.PIDController(rtol=1e-3, atol=1e-6)
    solve = tn.models.Solve(dfx.Tsit5(), controller, regularizer=tn.TotalDerivative(order=2))
    for coefficients, weight in ((hermite, 0.0), (natural, 0.0), (natural, 1e-5)):
        loss, nfe = train(coefficients, weight, solve, num_steps)
        name = f"{coefficients.__name__}, weight {weight:g}:"
        print(f"{name:24} test loss {loss:.4f}, {nfe} evaluations")


if __name__ == "__main__":
    main()
