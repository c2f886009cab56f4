"""A convolution that stays fast inside loops on a CPU, together with all its derivatives.

XLA's fast convolution for CPUs needs `NHWC` images and `HWIO` kernels. XLA transposes other
operands outside of loops only. JAX's derivatives of a convolution have other layouts, so the
backward pass of a solver's loop falls back to code that is many times slower. Here the derivatives
of a convolution are convolutions of the same layout, applied to transposed operands.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive, primitives
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float

from ..taylor import register_rule


convolve_p = Primitive("convolve")
Images = Float[Array, "num height width channels"]
Kernel = Float[Array, "kernel_height kernel_width channels out"]


def convolve(
    images: Images, kernel: Kernel, padding: Sequence[int]
) -> Float[Array, "num _height _width out"]:
    """Convolve images with a kernel, as neural networks do: without flipping the kernel.

    `padding` is the number of zeros on each side, for height and width.
    """
    return convolve_p.bind(images, kernel, padding=tuple(padding))


def _plain(images, kernel, *, padding):
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        window_strides=(1, 1),
        padding=[(p, p) for p in padding],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _transpose_images(ct, images, kernel, *, padding):
    del images
    flipped = jnp.swapaxes(kernel[::-1, ::-1], 2, 3)
    return convolve(ct, flipped, [n - 1 - p for n, p in zip(kernel.shape, padding, strict=False)])


def _transpose_kernel(ct, images, kernel, *, padding):
    del kernel
    # The sum is over images, so images and channels change places.
    gradient = convolve(jnp.swapaxes(images, 0, 3), jnp.transpose(ct, (1, 2, 0, 3)), padding)
    return jnp.transpose(gradient, (1, 2, 0, 3))


def _batched(args, axes, *, padding):
    images, kernel = args
    if axes[1] is not None:
        return jax.vmap(partial(_plain, padding=padding), in_axes=tuple(axes))(*args), 0
    images = jnp.moveaxis(images, axes[0], 0)
    merged = convolve(images.reshape(-1, *images.shape[2:]), kernel, padding)
    return merged.reshape(*images.shape[:2], *merged.shape[1:]), 0


@convolve_p.def_abstract_eval
def _shape(images, kernel, *, padding):
    out = jax.eval_shape(partial(_plain, padding=padding), images, kernel)
    return ShapedArray(out.shape, out.dtype)


convolve_p.def_impl(jax.jit(_plain, static_argnames="padding"))
mlir.register_lowering(convolve_p, mlir.lower_fun(_plain, multiple_results=False))
ad.defbilinear(convolve_p, _transpose_images, _transpose_kernel)
batching.primitive_batchers[convolve_p] = _batched
register_rule(convolve_p, primitives.conv_general_dilated_p)
