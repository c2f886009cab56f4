"""Calls, custom rules, branches, loops and effects.

Everything must be followed into the bodies of the primitives that hold programs of their own.
"""

from functools import partial

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jax import checkpoint_policies, lax
from jax.ad_checkpoint import checkpoint_name

from .tensors import fixed, like, table


W = 0.7 * fixed(3, 3)
SIGNS = np.array([0.5, -0.3, 1.2])
POLICIES = checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("kept")


def sines(x):
    for _ in range(2):
        x = jnp.sin(x) + x * jnp.cos(x)
    return x


@jax.jit
def layer(x):
    return jnp.tanh(W @ x)


@jax.custom_jvp
def doubled(x):
    return jnp.sin(x) * jnp.sum(x)


@doubled.defjvp
def _doubled_jvp(primals, tangents):
    """Twice the true derivative, so that a rule that is ignored shows."""
    (x,), (t,) = primals, tangents
    slope = lax.cond(jnp.sum(x) > -9, jnp.cos, jnp.sin, x)
    return doubled(x), 2 * (slope * t * jnp.sum(x) + jnp.sin(x) * jnp.sum(t))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def tripled(f, x):
    return f(x)


@tripled.defjvp
def _tripled_jvp(f, primals, tangents):
    return tripled(f, primals[0]), 3 * jax.jvp(f, primals, tangents)[1]


@jax.custom_jvp
def product(x, y):
    return x * y


product.defjvps(lambda t, _, x, y: t * y, None)


@jax.custom_jvp
def looped(x):
    return lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) + x, x)


looped.defjvps(lambda t, value, x: t * lax.fori_loop(0, 2, lambda i, y: y * value, jnp.cos(x)))


def plain(x):
    return jnp.logaddexp(jnp.logaddexp(x, 0.0), 0.0)


@jax.custom_vjp
def ruled(x):
    return plain(x)


ruled.defvjp(lambda x: (plain(x), x), lambda x, cotangent: (cotangent * jax.nn.sigmoid(x),))


def iterate(f, times=2):
    return lambda x: lax.scan(lambda c, _: (f(c), c), x, None, times)


def instead(fun, why="jvp of custom_vjp raises; the same function without it is the reference"):
    return {"reference": like(fun), "why": why}


def kept_by_name(x):
    return sines(checkpoint_name(jnp.sin(x), "kept"))


def partly_stopped(x):
    return lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * lax.stop_gradient(c) + x, x)


CALLS = [
    ("jit", jax.jit(sines), [(3,)]),
    ("jit_nested", jax.jit(lambda x: layer(x) * layer(layer(x) + 1)), [(3,)]),
    ("jit_constant_argument", lambda x: jax.jit(lambda a, b: a * b)(x, fixed(3)), [(3,)]),
    ("jit_closure", lambda x, y: jax.jit(lambda a: a * jnp.exp(y))(x), [(3,), (3,)]),
    ("jit_static", lambda x: jax.jit(lambda n, a: a**n, static_argnums=0)(3, x), [(3,)]),
    ("jit_boolean_output", lambda x: jax.jit(lambda a: (a**2, a > 0))(x), [(3,)]),
    ("checkpoint", jax.checkpoint(sines), [(3,)]),
    ("checkpoint_policy", jax.checkpoint(lambda x: sines(W @ x), policy=POLICIES[0]), [(3,)]),
    ("checkpoint_name", jax.checkpoint(kept_by_name, policy=POLICIES[1]), [(3,)]),
    ("named_scope", jax.named_scope("scope")(sines), [(3,)]),
    ("named_call", jax.named_call(sines, name="call"), [(3,)]),
    ("custom_jvp_with_cond", doubled, [(3,)]),
    ("custom_jvp_nondiff", lambda x: tripled(jnp.sin, tripled(jnp.exp, x)), [(3,)]),
    ("custom_jvp_one_argument_ignored", lambda x: product(x, jnp.sin(x)), [(3,)]),
    ("custom_jvp_with_loops", looped, [(3,)]),
    ("custom_jvp_in_scan", iterate(doubled), [(2,)]),
    ("custom_jvp_vmapped", jax.vmap(doubled), [(2, 2)]),
    ("custom_vjp", ruled, [(3,)], instead(plain)),
    ("custom_vjp_in_scan", iterate(ruled), [(3,)], instead(iterate(plain))),
    ("custom_vjp_vmapped", jax.vmap(ruled), [(3,)], instead(plain)),
    ("stop_gradient", lambda x: x * lax.stop_gradient(jnp.sin(x)), [(3,)]),
    ("stop_gradient_rounded", lambda x: (x + lax.stop_gradient(jnp.round(x) - x)) ** 2, [(3,)]),
    ("stop_gradient_in_loop", partly_stopped, [(3,)]),
]


def branches(x, predicate):
    return lax.cond(predicate, lambda y: jnp.sin(y) @ W, lambda y: y * y[0], x)


def closed_cond(x, y):
    return lax.cond(jnp.sum(x) > 9, lambda: (x, jnp.float64(1)), lambda: (x * y, jnp.exp(y[0])))


def chosen(x, i):
    return lax.switch(i, [jnp.sin, lambda y: y**3, jnp.ones_like, jnp.exp], x)


BRANCHES = [
    ("cond_true", lambda x: branches(x, x[0] > 0), [SIGNS]),
    ("cond_false", lambda x: branches(x, x[0] < 0), [SIGNS]),
    ("cond_argument", branches, [SIGNS, np.array(True)]),
    ("cond_closure", closed_cond, [(3,), (3,)]),
    (
        "cond_nested",
        lambda x: lax.cond(x[0] > 0, lambda y: branches(y, y[1] > 0), sines, x),
        [SIGNS],
    ),
    ("cond_other_constant", lambda x: lax.cond(x[0] > 0, sines, jnp.zeros_like, x), [SIGNS]),
    ("cond_constant", lambda x: x * lax.cond(x[0] > 0, jnp.ones_like, sines, x), [SIGNS]),
    ("cond_of_predicate", lambda x: x * lax.cond(x[0] > 0, lambda: 2.0, lambda: 3.0), [SIGNS]),
    ("switch_0", chosen, [(3,), np.array(0)]),
    ("switch_constant_branch", lambda x, i: x * chosen(x, i), [(3,), np.array(2)]),
    ("switch_data_dependent", lambda x: chosen(x, jnp.argmin(x)), [SIGNS]),
    ("vmap_of_cond", jax.vmap(lambda y: lax.cond(y > 0, jnp.sin, jnp.exp, y)), [SIGNS]),
    ("vmap_of_switch", lambda x: jax.vmap(chosen)(x, np.array([0, 1, 3])), [(3,)]),
]


def doubling(c):
    return c * 2


def until_large(x):
    """The number of steps depends on x."""
    step = (lambda c: c[1][0] < 20, lambda c: (c[0] + 1, c[1] * np.array([1.5, 1.0, 1.0]) + x))
    count, y = lax.while_loop(*step, (0, x))
    return y * jnp.asarray(count, y.dtype)


def late(x):
    """Constant carries at first, of which one more varies after every iteration."""
    one = jnp.float64(1)
    return lax.scan(lambda c, _: ((c[1] * 2, c[2] * c[1], x), c[0]), (one, one, one), None, 4)


def rnn(x, xs, w, **options):
    def step(h, x):
        h = jnp.tanh(w.T @ h + W @ x)
        return h, h[:2] * x[0]

    return lax.scan(step, x, xs, **options)


def nested_scan(x):
    def outer(c, y):
        return lax.scan(lambda c, y: (jnp.sin(c * y), c), c + y, x)

    return lax.scan(outer, x[0], x)


def counted(x):
    def step(c, y):
        return (c[0] + 1, c[1] * y + c[0].astype(y.dtype)), c

    return lax.scan(step, (0, x[0]), x)


def constant_body(x):
    """The transpose and the ones are made inside the body and do not vary."""

    def step(c, i):
        return jnp.tanh(jnp.asarray(W).T @ c + jnp.ones(3) * i), None

    return lax.scan(step, x, jnp.arange(3.0))[0]


def for_loop(lower, upper, x):
    return lax.fori_loop(lower, upper, lambda i, c: jnp.sin(c) + x * jnp.float64(i), x)


def eqx_while(kind, x):
    step = (lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) + x))
    return eqxi.while_loop(*step, (jnp.array(0), x), max_steps=4, kind=kind)[1]


def eqx_scan(kind, x):
    return eqxi.scan(lambda c, y: (jnp.sin(c) * y, c), x[0], x, kind=kind)


LOOPS = [
    ("while_data_dependent", until_large, [SIGNS]),
    ("while_idle", lambda x: lax.while_loop(lambda c: c > 9, jnp.sin, x**2), [np.array(0.3)]),
    ("while_bound", lambda x, y: lax.while_loop(lambda c: c < y, doubling, x), [1.2, 5.1]),
    ("while_constant", lambda x: x * lax.while_loop(lambda c: c < 5, doubling, 1.0), [(3,)]),
    ("fori_static", partial(for_loop, 0, 3), [(3,)]),
    ("fori_dynamic", lambda n, x: for_loop(1, n, x), [np.array(4), (3,)]),
    ("fori_at", lambda x: lax.fori_loop(1, 4, lambda i, c: c.at[i].add(c[i - 1] ** 2), x), [(4,)]),
    ("scan", rnn, [(3,), (2, 3), (3, 3)]),
    ("scan_of_carry", lambda x: rnn(x, fixed(2, 3), W), [(3,)]),
    ("scan_of_inputs", lambda xs: rnn(fixed(3), xs, W), [(2, 3)]),
    ("scan_of_constants", lambda w: rnn(fixed(3), fixed(2, 3), w), [(3, 3)]),
    ("scan_reverse", partial(rnn, reverse=True), [(3,), (2, 3), (3, 3)]),
    ("scan_unrolled", partial(rnn, unroll=2), [(3,), (3, 3), (3, 3)]),
    ("scan_length_0", lambda x: rnn(x**2, np.zeros((0, 3)), W), [(3,)]),
    ("scan_length_1", rnn, [(3,), (1, 3), (3, 3)]),
    ("scan_nested", nested_scan, [(3,)]),
    ("scan_integer_carry", counted, [(3,)]),
    ("scan_outputs_only", lambda x: lax.scan(lambda c, y: (c, (jnp.sin(y), 1.0)), None, x), [(3,)]),
    ("scan_carry_varies_late", late, [()]),
    ("scan_constants_in_body", constant_body, [(3,)]),
    ("map", lambda x: lax.map(sines, x), [(3,)]),
    ("associative_scan", lambda x: lax.associative_scan(jnp.matmul, x), [(4, 2, 2)]),
    ("vmap", jax.vmap(lambda y: sines(W @ y)), [(2, 3)]),
    ("vmap_of_while", jax.vmap(lambda y: lax.while_loop(lambda c: c < 3, doubling, y**2)), [SIGNS]),
    ("vmap_of_scan", jax.vmap(counted), [(2, 3)]),
    ("vmap_axis_sum", jax.vmap(lambda y: y * lax.psum(y, "i"), axis_name="i"), [(3,)]),
    ("eqx_while_lax", partial(eqx_while, "lax"), [(3,)]),
    ("eqx_while_bounded", partial(eqx_while, "bounded"), [(3,)]),
    ("eqx_while", partial(eqx_while, "checkpointed"), [(3,)], instead(partial(eqx_while, "lax"))),
    ("eqx_scan_lax", partial(eqx_scan, "lax"), [(3,)]),
    ("eqx_scan", partial(eqx_scan, "checkpointed"), [(3,)], instead(partial(eqx_scan, "lax"))),
]


def random_walk(x):
    """The keys are carried along by the loop and split in it."""

    def step(carry, y):
        key, draw = jax.random.split(carry[0])
        return (key, carry[1] * jax.random.uniform(draw, (), y.dtype) + jnp.sin(y)), carry[1]

    return lax.scan(step, (jax.random.key(5), x[0]), x)[1]


def callback_of_constant(x):
    shape = jax.ShapeDtypeStruct((3,), np.dtype("float64"))
    return x**2 * jax.pure_callback(np.sin, shape, jnp.asarray(fixed(3)))


def observed(x):
    jax.debug.callback(lambda y: None, x)
    jax.debug.print("value {}", x[0])
    return jnp.sin(x)


def gamma(x):
    return jax.random.gamma(jax.random.key(5), jnp.exp(x), dtype=x.dtype)


EFFECTS = [
    ("debug", observed, [(3,)]),
    ("debug_in_scan", iterate(observed), [(3,)]),
    ("error_if", lambda x: jnp.sin(eqx.error_if(x, x[0] > 1e3, "too large")), [(3,)]),
    ("pure_callback_of_constant", callback_of_constant, [(3,)]),
    ("random_normal", lambda x: x**2 * jax.random.normal(jax.random.key(5), (3,), x.dtype), [(3,)]),
    ("random_keys_in_scan", random_walk, [(3,)]),
    ("random_gamma", gamma, [(3,)], {"orders": 1, "why": "JAX has only its first derivative"}),
    ("rounding", lambda x: x * jnp.round(jnp.sin(x)) + jnp.floor(x), [SIGNS]),
]

CASES = [
    *table("call", CALLS),
    *table("branch", BRANCHES),
    *table("loop", LOOPS),
    *table("effect", EFFECTS),
]
