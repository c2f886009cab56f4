"""The contenders that run on JAX: `python -m benchmarks.peers.jax_side PROBLEM`."""

import sys
import time
from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.experimental.ode import odeint

import taynode as tn

from .problems import FIRST_STEP, Problem, PROBLEMS, TOLERANCE
from .serving import Contender, serve


# `DirectAdjoint` takes time in proportion to it.
MAX_STEPS_DIRECT = 64
# How often a unit repeats the gradient of f.
UNIT = 50
CONTROL = dfx.PIDController(rtol=TOLERANCE, atol=TOLERANCE)


def main(name: str) -> None:
    """Compile everything, and wait."""
    problem = PROBLEMS[name]
    field, y0, params = field_of(problem)
    contenders = {}
    for kind, unit in units(field, y0, params).items():
        contenders[f"unit {kind}"] = compiled(unit, params, UNIT)
    for title, solve in solves(problem, field, y0).items():
        nfe = int(solve(params)[1]) if "taynode" in title or "diffrax" in title else 0
        state = lambda p, solve=solve: solve(p)[0]
        loss = lambda p, state=state: sum(jnp.mean(x**2) for x in jtu.tree_leaves(state(p)))
        contenders[f"{title} forward"] = compiled(state, params, nfe)
        contenders[f"{title} gradient"] = compiled(jax.grad(loss), params, nfe)
    device = jax.devices()[0]
    about = f"jax {jax.__version__}, diffrax {dfx.__version__} on {device.device_kind}"
    if (
        device.platform == "gpu"
        and getattr(jax.config, "jax_default_matmul_precision", None) is None
    ):
        about += " (products in TF32: with JAX_DEFAULT_MATMUL_PRECISION=highest they are float32)"
    serve(contenders, about)


def field_of(problem: Problem) -> tuple[Any, Any, Any]:
    """A vector field f(t, y, params), the initial state and the parameters."""
    arrays = {name: jnp.asarray(x) for name, x in problem.arrays().items()}
    x, noise = arrays.pop("x"), arrays.pop("noise")
    num_layers = len(problem.sizes) - 1
    layers = [(arrays[f"W{i}"], arrays[f"b{i}"]) for i in range(num_layers)]

    def network(t, y, layers):
        axis = 1 if problem.kind == "image" else -1
        for i, (weight, bias) in enumerate(layers):
            hidden = jnp.tanh(y) if i else y
            shape = list(y.shape)
            shape[axis] = 1
            time = jnp.broadcast_to(jnp.asarray(t, y.dtype), shape)
            inputs = jnp.concatenate([hidden, time], axis)
            if problem.kind == "image":
                y = jax.lax.conv(inputs, weight, (1, 1), "SAME") + bias[:, None, None]
            else:
                y = inputs @ weight + bias
        return y

    def flow(t, state, layers):
        x, _ = state
        f = lambda x: network(t, x, layers)
        if problem.kind == "flow":
            pushed = [jax.jvp(f, (x,), (jnp.zeros_like(x).at[:, i].set(1),)) for i in range(2)]
            return pushed[0][0], -sum(derivative[:, i] for i, (_, derivative) in enumerate(pushed))
        velocity, derivative = jax.jvp(f, (x,), (noise,))
        return velocity, -jnp.sum(noise * derivative, axis=(1, 2, 3))

    if problem.kind == "mlp":
        return network, x, layers
    return flow, (x, jnp.zeros(len(x), x.dtype)), layers


def solves(problem: Problem, field: Any, y0: Any) -> dict[str, Any]:
    """Functions of the parameters that return the last state and the evaluations."""

    def by(solve, **options):
        def one(y0, params):
            solution = solve(
                dfx.ODETerm(field), dfx.Dopri5(), 0.0, 1.0, FIRST_STEP, y0, params,
                stepsize_controller=CONTROL, **options
            )  # fmt: skip
            last = jtu.tree_map(lambda x: x[-1], solution.ys)
            return last, 1 + 6 * solution.stats["num_steps"]

        return one

    def by_odeint(y0, params):
        ys = odeint(
            lambda y, t, params: field(t, y, params), y0, jnp.array([0.0, 1.0]), params,
            rtol=TOLERANCE, atol=TOLERANCE,
        )  # fmt: skip
        return jtu.tree_map(lambda x: x[-1], ys), 0

    every = {
        "taynode": by(tn.diffeqsolve),
        "diffrax": by(dfx.diffeqsolve),
        "diffrax, DirectAdjoint": by(
            dfx.diffeqsolve, adjoint=dfx.DirectAdjoint(), max_steps=MAX_STEPS_DIRECT
        ),
        "diffrax, BacksolveAdjoint": by(dfx.diffeqsolve, adjoint=dfx.BacksolveAdjoint()),
        "jax.experimental.ode": by_odeint,
    }
    if not problem.per_sample:
        return {name: lambda p, one=one: one(y0, p) for name, one in every.items()}

    def alone(one):
        each = jax.vmap(one, in_axes=(0, None))

        def solve(params):
            last, nfe = each(y0, params)
            # In lock-step, all wait for the slowest.
            return last, jnp.max(nfe)

        return solve

    return {name: alone(one) for name, one in every.items()}


def units(field: Any, y0: Any, params: Any) -> dict[str, Any]:
    """The vector field, and its value and gradient, over and over in a compiled loop."""
    near = lambda y, change: jtu.tree_map(lambda a, b: a + 1e-6 * b, y, change)

    def forward(params):
        return jax.lax.fori_loop(0, UNIT, lambda _, y: near(y, field(0.3, y, params)), y0)

    def gradient(params):
        def body(_, carry):
            y, total = carry
            slope, pull = jax.vjp(lambda y, p: field(0.3, y, p), y, params)
            of_y, of_params = pull(slope)
            return near(near(y, slope), of_y), jtu.tree_map(jnp.add, total, of_params)

        return jax.lax.fori_loop(0, UNIT, body, (y0, jtu.tree_map(jnp.zeros_like, params)))

    return {"forward": forward, "gradient": gradient}


def compiled(function: Any, params: Any, nfe: int) -> Contender:
    """A compiled function of the parameters."""
    start = time.perf_counter()
    program = jax.jit(function).lower(params).compile()
    seconds = time.perf_counter() - start
    return Contender(lambda: jax.block_until_ready(program(params)), nfe, seconds)


if __name__ == "__main__":
    main(sys.argv[1])
