"""A neural SDE that turns noise into two moons, with fewer adaptive steps.

Only the end of a path matters, so paths are free to be cheap. The penalty is the error estimate of
accepted steps, which costs nothing. Run it with `python examples/sde.py`: under a minute.
"""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import optax

import taynode as tn


CONTROLLER = dfx.PIDController(rtol=3e-3, atol=3e-3)


class Drift(eqx.Module):
    mlp: tn.models.TimeMLP

    def __call__(self, t, y, args):
        return self.mlp(t, y)


class Diffusion(eqx.Module):
    mlp: tn.models.TimeMLP

    def __call__(self, t, y, args):
        return lx.DiagonalLinearOperator(jax.nn.sigmoid(self.mlp(t, y)))


def moons(num, *, key):
    angle_key, noise_key = jr.split(key)
    sign = 1.0 - 2.0 * (jnp.arange(num) % 2)
    angle = jr.uniform(angle_key, (num,), maxval=jnp.pi)
    upper = jnp.stack([jnp.cos(angle) - 0.5, jnp.sin(angle) - 0.25], axis=1)
    return 2 * sign[:, None] * upper + 0.1 * jr.normal(noise_key, (num, 2))


def sample(model, num, key):
    """States at time 1, and the statistics of the solve, which is one for all samples."""
    drift, diffusion = model
    start_key, path_key = jr.split(key)
    path = dfx.VirtualBrownianTree(
        0.0, 1.0, 1e-3, (num, 2), path_key, levy_area=dfx.SpaceTimeLevyArea
    )
    sol = tn.diffeqsolve(
        dfx.MultiTerm(dfx.ODETerm(drift), dfx.ControlTerm(diffusion, path)),
        dfx.SPaRK(),
        0.0,
        1.0,
        0.05,
        jr.normal(start_key, (num, 2)),
        stepsize_controller=CONTROLLER,
        regularizer=tn.ErrorEstimate(),
        quadrature=tn.AcceptedSteps(),
    )
    return sol.ys[-1], sol.stats


def train(weight, num_steps):
    keys = jr.split(jr.key(0))
    networks = [
        tn.models.TimeMLP(sizes, jax.nn.silu, key=key)
        for sizes, key in zip(((2, 64, 64, 2), (2, 32, 2)), keys, strict=True)
    ]
    model = Drift(networks[0]), Diffusion(networks[1])
    optim = optax.adam(optax.cosine_decay_schedule(5e-3, num_steps))
    opt_state = optim.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, opt_state, key):
        data_key, key = jr.split(key)

        def objective(model):
            draws, stats = sample(model, 256, key)
            score = tn.models.energy_score(draws, moons(256, key=data_key))
            return score + weight * stats["penalty"]

        updates, opt_state = optim.update(eqx.filter_grad(objective)(model), opt_state)
        return eqx.apply_updates(model, updates), opt_state

    for key in jr.split(jr.key(1), num_steps):
        model, opt_state = step(model, opt_state, key)
    return model


def main(num_steps=300):
    """Train without and with the penalty."""
    data = moons(1000, key=jr.key(2))
    exact = tn.models.energy_score(moons(1000, key=jr.key(4)), data)
    for weight in (0.0, 0.003):
        draws, stats = eqx.filter_jit(sample)(train(weight, num_steps), 1000, jr.key(3))
        score = tn.models.energy_score(draws, data)
        drift, diffusion = stats["nfe_by_term"]
        print(
            f"weight {weight}: energy score {score:.4f} (of more data {exact:.4f}), "
            f"{drift} evaluations of the drift and {diffusion} of the diffusion"
        )


if __name__ == "__main__":
    main()
