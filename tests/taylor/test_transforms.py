"""The engine under every JAX transform, dtype and kind of state."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
import pytest

import taynode as tn


W = jr.normal(jr.key(0), (3, 3)) / 2
Y = jnp.array([0.3, -0.5, 0.8])
ORDER = 4


def field(t, y, args):
    return jax.nn.softplus(args @ y) * jnp.cos(t) + jnp.tanh(y)


def last(y, w=W, t=0.3):
    return tn.solution_derivatives(field, t, y, w, order=ORDER)[-1]


def nested(y, w=W, t=0.3, order=ORDER):
    """The total derivative by nesting `jvp`."""

    def rate(t, y):
        return field(t, y, w)

    fun = rate
    for _ in range(order - 1):
        fun = lambda t, y, fun=fun: jax.jvp(fun, (t, y), (jnp.ones_like(t), rate(t, y)))[1]
    return fun(jnp.asarray(t), y)


def close(a, b, tolerance=1e-11):
    jtu.tree_map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=1e-12), a, b)


def agree(transform, *args):
    """A transformation of our derivative and of the nested one, in one program."""
    close(*jax.jit(lambda *args: (transform(last)(*args), transform(nested)(*args)))(*args))


def test_eager_and_jit_agree_with_nested_jvp():
    agree(lambda fun: fun, Y)
    close(last(Y), jax.jit(last)(Y))


def test_vmap():
    ys = jnp.stack([Y, 2 * Y, -Y])
    agree(jax.vmap, ys)
    close(jax.jit(jax.vmap(last))(ys)[1], jax.jit(last)(ys[1]))


def test_reverse_mode():
    def gradient(fun):
        return jax.grad(lambda *a: jnp.sum(fun(*a) ** 2), argnums=(0, 1, 2))

    agree(gradient, Y, W, 0.3)


@pytest.mark.slow
def test_forward_mode_and_second_derivatives():
    agree(jax.jacfwd, Y)
    agree(lambda fun: jax.hessian(lambda y: jnp.sum(fun(y))), Y)


@pytest.mark.slow
def test_inside_scan_with_gradient():
    def euler(fun):
        def step(y, _):
            return y + 0.1 * fun(y), jnp.sum(fun(y) ** 2)

        return jax.grad(lambda y: jnp.sum(jax.lax.scan(step, y, None, length=3)[1]))

    agree(euler, Y)


def test_gradient_through_loops_and_branches_inside_the_field():
    def looped(t, y, w):
        y, _ = jax.lax.scan(lambda c, _: (jnp.tanh(w @ c), None), y, None, length=3)
        return jax.lax.cond(y[0] > 0, jnp.sin, lambda y: y**2, y)

    def unrolled(t, y, w):
        for _ in range(3):
            y = jnp.tanh(w @ y)
        return jnp.sin(y) if y_is_positive else y**2

    def penalty(field):
        return lambda w, y: jnp.sum(tn.solution_derivatives(field, 0.0, y, w, order=3)[-1] ** 2)

    for y in (Y, -Y):
        state = y
        for _ in range(3):
            state = jnp.tanh(W @ state)
        y_is_positive = bool(state[0] > 0)
        gradients = [jax.grad(penalty(f), argnums=(0, 1)) for f in (looped, unrolled)]
        close(*jax.jit(lambda w, y, fs=gradients: [f(w, y) for f in fs])(W, y))


def test_eval_shape():
    shape = jax.eval_shape(last, Y)
    assert (shape.shape, shape.dtype) == (Y.shape, Y.dtype)


def test_a_jitted_function_is_traced_once():
    traces = []

    @jax.jit
    def fun(y, w):
        def counted(t, y, args):
            traces.append(1)
            return field(t, y, args)

        return tn.solution_derivatives(counted, 0.0, y, w, order=3)

    fun(Y, W)
    fun(2 * Y, 3 * W)
    assert len(traces) == 1


def test_the_field_is_traced_once_whatever_the_order():
    traces = []

    def counted(t, y, args):
        traces.append(1)
        return field(t, y, args)

    tn.solution_derivatives(counted, 0.0, Y, W, order=7)
    assert len(traces) == 1


def test_nested_use_of_the_engine():
    """The derivatives of a field that is itself a second derivative of another one."""

    def second(t, y, args):
        return tn.solution_derivatives(field, t, y, args, order=2)[-1]

    def second_nested(t, y, args):
        return nested(y, args, t, order=2)

    fields = second, second_nested
    close(*jax.jit(lambda y: [tn.solution_derivatives(f, 0.3, y, W, order=3) for f in fields])(Y))


def test_pytree_states_and_arguments():
    def pair(t, y, args):
        return {"a": args["w"] @ y["b"][0] * args["scale"], "b": (jnp.sin(y["a"]) * t,)}

    def flat(t, y, args):
        a, b = y[:3], y[3:]
        return jnp.concatenate([2.0 * (W @ b), jnp.sin(a) * t])

    y = {"a": Y, "b": (Y + 1,)}
    args = {"w": W, "scale": 2.0, "name": "x"}
    got = jax.jit(lambda y: tn.solution_derivatives(pair, 0.5, y, args, order=4))(y)
    expected = jax.jit(lambda y: tn.solution_derivatives(flat, 0.5, y, order=4))(
        jnp.concatenate([Y, Y + 1])
    )
    for g, e in zip(got, expected, strict=True):
        close(jnp.concatenate([g["a"], g["b"][0]]), e)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32, jnp.float64, jnp.complex64])
def test_dtypes_are_preserved(dtype):
    y, w = Y.astype(dtype), W.astype(dtype)

    def smooth(t, y, args):
        return jnp.tanh(args @ y) * y + jnp.exp(y) / (y * y + 2)

    t = jnp.zeros((), jnp.finfo(dtype).dtype if dtype != jnp.complex64 else jnp.float32)
    derivatives = tn.solution_derivatives(smooth, t, y, w, order=3)
    assert [d.dtype for d in derivatives] == [dtype] * 3
    exact = tn.solution_derivatives(smooth, 0.0, Y, W, order=3)
    tolerance = 40 * float(jnp.finfo(dtype).eps)
    for d, e in zip(derivatives, exact, strict=True):
        error = np.abs(np.asarray(d).astype(np.complex128) - np.asarray(e))
        assert np.max(error) <= tolerance * np.max(np.abs(e))


def test_weak_types_are_preserved():
    derivatives = tn.solution_derivatives(lambda t, y, args: jnp.sin(y) * t, 0.2, 1.0, order=3)
    assert all(d.weak_type for d in derivatives)
    primal, series = tn.jet(lambda x: jnp.tanh(x) / 3, (0.5,), ([1.0, 0.0],))
    assert primal.weak_type
    assert all(s.weak_type for s in series)


def test_integer_and_boolean_inputs_are_constants():
    def fun(x, n, mask, key):
        return jnp.where(mask, x * n.astype(x.dtype), x) + jr.normal(key, x.shape)

    n, mask, key = jnp.arange(3), jnp.array([True, False, True]), jr.key(1)
    zeros = [jnp.zeros(())] * 2
    _, series = tn.jet(fun, (Y, n, mask, key), ([Y, Y], zeros, zeros, zeros))
    for term in series:
        close(term, jnp.where(mask, Y * n.astype(float), Y))


def test_integer_args_of_a_field_are_constants():
    def field(t, y, args):
        return jnp.where(args["mask"], y[args["index"]], 0.0) * args["n"]

    args = {"mask": jnp.array([True, False, True]), "index": jnp.array([2, 1, 0]), "n": 2}
    _, second = tn.solution_derivatives(field, 0.0, Y, args, order=2)
    close(second, 4 * jnp.where(args["mask"], Y, 0.0))


def test_effects_happen_once():
    seen = []

    def noisy(t, y, args):
        jax.debug.callback(lambda x: seen.append(float(x)), y[0])
        return jnp.sin(y)

    jax.block_until_ready(tn.solution_derivatives(noisy, 0.0, Y, order=5))
    jax.effects_barrier()
    assert seen == [pytest.approx(float(Y[0]))]


def test_error_if_inside_the_field():
    def checked(t, y, args):
        return jnp.sin(eqx.error_if(y, jnp.any(y > 10), "too large"))

    derivatives = jax.jit(lambda y: tn.solution_derivatives(checked, 0.0, y, order=3))(Y)
    close(derivatives, tn.solution_derivatives(lambda t, y, args: jnp.sin(y), 0.0, Y, order=3))
    with pytest.raises(Exception, match="too large"):
        jax.block_until_ready(tn.solution_derivatives(checked, 0.0, 20 + Y, order=3))


def test_equinox_module_as_field():
    class Field(eqx.Module):
        mlp: eqx.nn.MLP

        def __call__(self, t, y, args):
            return self.mlp(jnp.append(y, t))

    model = Field(eqx.nn.MLP(4, 3, 8, 2, key=jr.key(0)))

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model, y):
        return jnp.sum(tn.solution_derivatives(model, 0.0, y, order=3)[-1] ** 2)

    norms = [np.sum(np.abs(g)) for g in jtu.tree_leaves(gradient(model, Y))]
    assert all(np.isfinite(n) for n in norms)
    assert sum(norms) > 0


def test_structural_zeros_come_back_as_zeros():
    derivatives = tn.solution_derivatives(lambda t, y, args: jnp.ones(3), 0.0, Y, order=3)
    close(derivatives, [jnp.ones(3), jnp.zeros(3), jnp.zeros(3)])
