"""The convolution is the one of JAX, with all its derivatives, in every transformation."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn
from taynode.models import convolve


def reference(images, kernel, padding):
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        (1, 1),
        [(p, p) for p in padding],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def operands(height=5, width=4, kernel=(3, 3)):
    keys = jr.split(jr.key(0))
    images = jr.normal(keys[0], (2, height, width, 3), jnp.float64)
    return images, jr.normal(keys[1], (*kernel, 3, 2), jnp.float64)


def close(a, b):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), a, b)


def scalar(fn, padding):
    return lambda images, kernel: jnp.sum(jnp.sin(fn(images, kernel, padding)))


SHAPES = [((3, 3), (1, 1)), ((3, 3), (0, 0)), ((1, 3), (0, 1)), ((5, 3), (2, 0)), ((3, 3), (2, 1))]


@pytest.mark.parametrize(("kernel", "padding"), SHAPES)
def test_value_and_both_derivatives(kernel, padding):
    args = operands(height=6, kernel=kernel)
    close(convolve(*args, padding), reference(*args, padding))
    ours, theirs = (jax.grad(scalar(f, padding), argnums=(0, 1)) for f in (convolve, reference))
    close(ours(*args), theirs(*args))


def test_derivatives_of_derivatives():
    args = operands()

    def twice(fn):
        first = jax.grad(scalar(fn, (1, 1)), argnums=(0, 1))
        norm = lambda *args: sum(jnp.sum(g**2) for g in first(*args))
        return jax.jit(jax.grad(norm, argnums=(0, 1)))

    close(twice(convolve)(*args), twice(reference)(*args))
    direction = jax.tree.map(jnp.cos, args)
    ours, theirs = (jax.jvp(twice(f), args, direction) for f in (convolve, reference))
    close(ours, theirs)


@pytest.mark.parametrize("axes", [(0, None), (2, None), (None, 0), (0, 1), (None, 2)])
def test_batches(axes):
    shapes = [(2, 5, 4, 3), (3, 3, 3, 2)]
    args = []
    for shape, axis, key in zip(shapes, axes, jr.split(jr.key(1)), strict=True):
        full = list(shape)
        if axis is not None:
            full.insert(axis, 4)
        args.append(jr.normal(key, full, jnp.float64))
    ours, theirs = (
        jax.vmap(jax.value_and_grad(scalar(f, (1, 1)), argnums=(0, 1)), in_axes=axes)
        for f in (convolve, reference)
    )
    close(ours(*args), theirs(*args))


def test_taylor_mode_makes_one_convolution_an_order():
    images, kernel = operands()
    series = [jnp.cos(images), jnp.sin(images)]
    through = lambda f: lambda x: jnp.tanh(f(x, kernel, (1, 1)))
    ours, theirs = (tn.jet(through(f), (images,), (series,)) for f in (convolve, reference))
    close(ours, theirs)
    jaxpr = jax.make_jaxpr(lambda x: tn.jet(through(convolve), (x,), (series,)))(images)
    assert str(jaxpr).count(" convolve[") == 3


def test_loops_keep_the_axes_in_order():
    """Else XLA's fast convolution for CPUs is not used inside a solver's loop."""
    images, kernel = operands(kernel=(3, 3))
    kernel = jnp.concatenate([kernel, kernel[..., :1]], axis=-1)

    def solved(kernel):
        step = lambda x, _: (jnp.tanh(convolve(x, kernel, (1, 1))), None)
        return jnp.sum(jax.lax.scan(step, images, None, length=3)[0])

    text = jax.jit(jax.grad(solved)).lower(kernel).as_text()
    convolutions = [line for line in text.splitlines() if "stablehlo.convolution" in line]
    assert len(convolutions) == 3
    assert all("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" in line for line in convolutions)
