"""A convolution that stays fast inside loops on a CPU, together with all its derivatives.

XLA's fast convolution for CPUs needs operands with their axes in one order: `NHWC` for images,
`HWIO` for kernels. XLA rearranges other operands outside of loops only. JAX's derivatives of a
convolution have other orders of axes, so the backward pass of a solver's loop falls back to code
that is many times slower. Here the derivatives of a convolution are convolutions of the same kind,
applied to rearranged operands.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive, primitives
from jax.interpreters import ad, batching, mlir

from ..taylor import register_rule


convolve_p = Primitive("convolve")


def convolve(images: Any, kernel: Any, padding: Sequence[int]) -> Any:
    """Convolve images with a kernel, as neural networks do: without flipping the kernel.

    **Arguments:**

    - `images`: of shape `(num, height, width, channels in)`.
    - `kernel`: of shape `(height, width, channels in, channels out)`.
    - `padding`: the number of zeros on each side, for height and width.
    """
    return convolve_p.bind(images, kernel, padding=tuple(padding))


def _plain(images: Any, kernel: Any, *, padding: tuple[int, ...]) -> Any:
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        window_strides=(1, 1),
        padding=[(p, p) for p in padding],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _slope_of_images(ct: Any, images: Any, kernel: Any, *, padding: tuple[int, ...]) -> Any:
    del images
    flipped = jnp.swapaxes(kernel[::-1, ::-1], 2, 3)
    return convolve(ct, flipped, [n - 1 - p for n, p in zip(kernel.shape, padding, strict=False)])


def _slope_of_kernel(ct: Any, images: Any, kernel: Any, *, padding: tuple[int, ...]) -> Any:
    del kernel
    # The sum is over images, so images and channels change places.
    slope = convolve(jnp.swapaxes(images, 0, 3), jnp.transpose(ct, (1, 2, 0, 3)), padding)
    return jnp.transpose(slope, (1, 2, 0, 3))


def _batched(args: Sequence[Any], axes: Sequence[Any], *, padding: tuple[int, ...]) -> Any:
    images, kernel = args
    if axes[1] is not None:
        return jax.vmap(partial(_plain, padding=padding), in_axes=tuple(axes))(*args), 0
    images = jnp.moveaxis(images, axes[0], 0)
    merged = convolve(images.reshape(-1, *images.shape[2:]), kernel, padding)
    return merged.reshape(*images.shape[:2], *merged.shape[1:]), 0


@convolve_p.def_abstract_eval
def _shape(images: Any, kernel: Any, *, padding: tuple[int, ...]) -> Any:
    out = jax.eval_shape(partial(_plain, padding=padding), images, kernel)
    return ShapedArray(out.shape, out.dtype)


convolve_p.def_impl(jax.jit(_plain, static_argnames="padding"))
mlir.register_lowering(convolve_p, mlir.lower_fun(_plain, multiple_results=False))
ad.defbilinear(convolve_p, _slope_of_images, _slope_of_kernel)
batching.primitive_batchers[convolve_p] = _batched
register_rule(convolve_p, primitives.conv_general_dilated_p)
