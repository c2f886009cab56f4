"""The ten lines of the README, for an environment in which taynode has just been installed."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp

import taynode as tn


def vector_field(t, y, mlp):
    return jax.vmap(mlp)(y)


@eqx.filter_value_and_grad(has_aux=True)
def objective(mlp, weight, x, target, key):
    sol = tn.diffeqsolve(
        dfx.ODETerm(vector_field),
        dfx.Dopri5(),
        t0=0.0,
        t1=1.0,
        dt0=None,
        y0=x,
        args=mlp,
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-5),
        regularizer=tn.TotalDerivative(order=3),
        quadrature=tn.Sampled(batch_axis=0),
        key=key,
    )
    loss, penalty = jnp.mean((sol.ys[-1] - target) ** 2), sol.stats["penalty"]
    return loss + weight * penalty, dict(loss=loss, penalty=penalty, nfe=sol.stats["nfe"])


mlp = eqx.nn.MLP(2, 2, width_size=8, depth=1, key=jax.random.key(0))
x = jnp.linspace(-1.0, 1.0, 20).reshape(10, 2)
weight = tn.Budget(nfe=26)
state = weight.init()
(value, measured), gradient = objective(mlp, weight(state), x, x**3, jax.random.key(1))
state = weight.update(state, **measured)
assert value > 0
assert measured["penalty"] > 0
assert measured["nfe"] > 6
