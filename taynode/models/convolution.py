"""A convolution that stays fast inside loops on a CPU, together with all its derivatives.

XLA has a fast convolution for CPUs, for operands whose axes are in one order: images `NHWC`,
kernels `HWIO`. It rearranges others only outside of loops. JAX's derivatives of convolutions are
such others, so the backward pass of a solver's loop falls back to code that is many times slower.
Here the derivatives of a convolution are convolutions of the same kind, of rearranged operands.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive, primitives
from jax.interpreters import ad, batching, mlir

from ..taylor.registry import RULES


convolve_p = Primitive("convolve")


def convolve(images: Any, kernel: Any, padding: Sequence[int]) -> Any:
    """Convolve images with a kernel, as neural networks do: without turning it.

    **Arguments:**

    - `images`: of shape `(num, height, width, channels in)`.
    - `kernel`: of shape `(height, width, channels in, channels out)`.
    - `padding`: with how many zeros on each side, for height and width.
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
    turned = jnp.swapaxes(kernel[::-1, ::-1], 2, 3)
    return convolve(ct, turned, [n - 1 - p for n, p in zip(kernel.shape, padding, strict=False)])


def _slope_of_kernel(ct: Any, images: Any, kernel: Any, *, padding: tuple[int, ...]) -> Any:
    del kernel
    # A sum over images: they take the place of channels, and channels that of images.
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
RULES[convolve_p] = RULES[primitives.conv_general_dilated_p]
