"""Contractions, convolutions, Fourier transforms, shape manipulation, cumulative operations and
windows; and the helpers that the other modules of cases build their tables with.
"""

import zlib
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..case import Case, inexact_leaves, nested_jvp


def fixed(*shape, seed=0):
    """A constant array; NumPy's, so that it does not depend on JAX's settings at import."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def table(family, rows):
    """Cases of the rows `(name, fun, point)` or `(name, fun, point, options)`.

    A tuple of integers in `point` stands for a generic array of that shape.
    """
    cases = []
    for what, fun, point, *options in rows:
        name = f"{family}/{what}"
        rng = np.random.default_rng(zlib.crc32(b"point of " + name.encode()))
        arrays = tuple(rng.normal(size=x) if isinstance(x, tuple) else np.asarray(x) for x in point)
        cases.append(Case(name, fun, arrays, **(options[0] if options else {})))
    return cases


def like(other):
    """A reference that is nested `jvp` of a mathematically equal function."""

    def reference(curve, order):
        return nested_jvp(lambda s: inexact_leaves(other(*curve(s))), order)

    return reference


def complex_fixed(*shape):
    return fixed(*shape) + 1j * fixed(*shape, seed=1)


def dot(contract, batch=((), ()), **options):
    return lambda a, b: lax.dot_general(a, b, (contract, batch), **options)


CONTRACTIONS = [
    ("vecvec", jnp.dot, [(4,), (4,)]),
    ("vec_with_itself", lambda x: x @ x, [(4,)]),
    ("matvec", jnp.matmul, [(3, 4), (4,)]),
    ("matvec_constant_matrix", lambda x: fixed(3, 4) @ x, [(4,)]),
    ("vecmat_constant_vector", lambda a: fixed(3) @ a, [(3, 4)]),
    ("matmul", jnp.matmul, [(3, 4), (4, 2)]),
    ("matmul_constant_right", lambda a: a @ fixed(4, 2), [(3, 4)]),
    ("matmul_own_transpose", lambda x: x @ x.T, [(3, 4)]),
    ("matmul_square", lambda x: x @ x @ x, [(3, 3)]),
    ("matmul_batched", jnp.matmul, [(2, 3, 2), (2, 2, 3)]),
    ("matmul_broadcast", jnp.matmul, [(2, 2, 3), (3, 2)]),
    ("dot_general_plain", dot(((1,), (0,))), [(2, 3), (3, 4)]),
    ("dot_general_first_axes", dot(((0,), (0,))), [(3, 2), (3, 4)]),
    ("dot_general_two_axes", dot(((0, 2), (1, 0))), [(2, 3, 2), (2, 2, 3)]),
    ("dot_general_batch", dot(((2,), (1,)), ((0,), (0,))), [(2, 3, 2), (2, 2, 3)]),
    ("dot_general_batch_last", dot(((0,), (1,)), ((2,), (2,))), [(3, 2, 2), (2, 3, 2)]),
    ("dot_general_no_contraction", dot(((), ())), [(2, 3), (2,)]),
    ("dot_general_only_batch", dot(((), ()), ((0,), (1,))), [(3, 2), (2, 3)]),
    ("dot_general_complex", dot(((1,), (0,))), [complex_fixed(2, 3), complex_fixed(3, 2)]),
    ("dot_general_empty", dot(((1,), (0,))), [np.zeros((2, 0)), np.zeros((0, 3))]),
    (
        "dot_general_preferred_type",
        dot(((1,), (0,)), preferred_element_type=np.dtype("float64")),
        [(2, 3), (3, 4)],
    ),
    (
        "dot_general_highest_precision",
        dot(((1,), (0,)), precision=lax.Precision.HIGHEST),
        [(2, 3), (3, 4)],
    ),
    ("einsum_three", partial(jnp.einsum, "ij,jk,kl->il"), [(2, 3), (3, 2), (2, 3)]),
    ("einsum_four_vectors", partial(jnp.einsum, "i,i,j,j->"), [(3,), (3,), (3,), (3,)]),
    ("einsum_bilinear", lambda x: jnp.einsum("i,ij,j", x, fixed(4, 4), x), [(4,)]),
    ("einsum_trace", partial(jnp.einsum, "ii->"), [(3, 3)]),
    ("einsum_diagonal_batched", partial(jnp.einsum, "bii,bi->bi"), [(2, 2, 2), (2, 2)]),
    ("einsum_ellipsis", partial(jnp.einsum, "...ij,...j->...i"), [(2, 2, 3), (2, 3)]),
    ("inner", jnp.inner, [(2, 3), (4, 3)]),
    ("vdot_complex", jnp.vdot, [complex_fixed(4), complex_fixed(4)[::-1]]),
    ("outer", jnp.outer, [(3,), (4,)]),
    ("outer_with_itself", lambda x: jnp.outer(x, x), [(3,)]),
    ("kron", jnp.kron, [(2, 2), (2, 2)]),
    ("tensordot_axes_2", partial(jnp.tensordot, axes=2), [(2, 2, 3), (2, 3, 2)]),
    (
        "tensordot_named_axes",
        partial(jnp.tensordot, axes=([0, 2], [2, 1])),
        [(2, 2, 3), (2, 3, 2)],
    ),
    ("tensordot_axes_0", partial(jnp.tensordot, axes=0), [(2,), (3,)]),
    ("polyval", jnp.polyval, [(4,), (3,)]),
    ("polyder", jnp.polyder, [(5,)]),
    ("polyint", jnp.polyint, [(4,)]),
    ("polymul", jnp.polymul, [(3,), (3,)]),
    ("convolve_full", partial(jnp.convolve, mode="full"), [(6,), (3,)]),
    ("convolve_same", partial(jnp.convolve, mode="same"), [(6,), (3,)]),
    ("convolve_own", lambda x: jnp.convolve(x, x, mode="valid"), [(5,)]),
    ("correlate", partial(jnp.correlate, mode="valid"), [(6,), (3,)]),
    ("cross", jnp.cross, [(3,), (3,)]),
    ("cross_batched", jnp.cross, [(2, 3), (2, 3)]),
    ("vander", lambda x: jnp.vander(x, 4), [(3,)]),
]


def conv(window_strides, padding, **options):
    return lambda x, w: lax.conv_general_dilated(x, w, window_strides, padding, **options)


LAST = ("NHWC", "HWIO", "NHWC")

# (what, function of image and kernel, shape of image, shape of kernel)
CONVOLUTIONS = [
    ("1d", conv((1,), "VALID"), (1, 2, 6), (2, 2, 3)),
    ("1d_same", conv((1,), "SAME"), (1, 2, 5), (2, 2, 3)),
    ("1d_strided", conv((2,), "VALID"), (1, 2, 7), (2, 2, 3)),
    ("1d_lhs_dilated", conv((1,), [(1, 2)], lhs_dilation=(2,)), (1, 2, 4), (2, 2, 3)),
    ("1d_rhs_dilated", conv((1,), [(2, 2)], rhs_dilation=(2,)), (1, 2, 5), (2, 2, 3)),
    ("2d", conv((1, 1), "VALID"), (1, 1, 4, 4), (2, 1, 2, 2)),
    ("2d_strided_padded", conv((2, 1), [(1, 0), (0, 1)]), (1, 1, 4, 3), (2, 1, 2, 2)),
    ("2d_channels_last", conv((1, 1), "SAME", dimension_numbers=LAST), (1, 3, 3, 1), (2, 2, 1, 2)),
    ("1d_grouped", conv((1,), "SAME", feature_group_count=2), (1, 4, 4), (4, 2, 2)),
    ("1d_depthwise", conv((1,), "VALID", feature_group_count=3), (1, 3, 4), (3, 1, 2)),
    ("1d_batch_grouped", conv((1,), "VALID", batch_group_count=2), (4, 1, 4), (2, 1, 2)),
    (
        "1d_transposed",
        lambda x, w: lax.conv_transpose(
            x, w, (2,), "SAME", dimension_numbers=("NCH", "OIH", "NCH")
        ),
        (1, 2, 4),
        (2, 2, 3),
    ),
    (
        "2d_transposed",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=LAST),
        (1, 2, 2, 1),
        (2, 2, 1, 2),
    ),
]


def convolution_rows():
    for what, fun, image, kernel in CONVOLUTIONS:
        yield what, fun, [image, kernel]
    for what, fun, image, kernel in CONVOLUTIONS[:6:5]:
        yield f"{what}_of_image", lambda x, f=fun, k=kernel: f(x, fixed(*k)), [image]
        yield f"{what}_of_kernel", lambda w, f=fun, i=image: f(fixed(*i), w), [kernel]
    yield "1d_of_itself", lambda x: conv((1,), "SAME")(x, jnp.sin(x)), [(2, 2, 3)]


FOURIER = [
    ("fft_of_real", jnp.fft.fft, [(6,)]),
    ("fft", jnp.fft.fft, [complex_fixed(6)]),
    ("ifft", jnp.fft.ifft, [complex_fixed(6)]),
    ("fft_axis_0", partial(jnp.fft.fft, axis=0), [complex_fixed(4, 2)]),
    ("rfft_even", jnp.fft.rfft, [(6,)]),
    ("rfft_odd", jnp.fft.rfft, [(5,)]),
    ("irfft_even", jnp.fft.irfft, [complex_fixed(4)]),
    ("irfft_odd", partial(jnp.fft.irfft, n=5), [complex_fixed(3)]),
    ("fft2", jnp.fft.fft2, [complex_fixed(3, 4)]),
    ("rfft2", jnp.fft.rfft2, [(3, 4)]),
    ("irfft2", jnp.fft.irfft2, [complex_fixed(3, 3)]),
    ("spectral_derivative", lambda x: jnp.fft.irfft(1j * np.arange(4) * jnp.fft.rfft(x)), [(6,)]),
    ("power_spectrum", lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2, [(5,)]),
]


def pad_by(*configuration):
    return lambda x, value: lax.pad(x, value, list(configuration))


SHAPES = [
    ("reshape", lambda x: jnp.sin(x).reshape(3, 4), [(2, 6)]),
    ("reshape_fortran", lambda x: jnp.sin(x).reshape((3, 4), order="F"), [(2, 6)]),
    ("ravel_with_dimensions", lambda x: lax.reshape(x**2, (6,), dimensions=(1, 0)), [(2, 3)]),
    ("transpose", lambda x: jnp.transpose(x**2, (2, 0, 1)), [(2, 3, 2)]),
    ("moveaxis_swapaxes", lambda x: jnp.swapaxes(jnp.moveaxis(x**2, 0, 2), 0, 1), [(2, 3, 2)]),
    ("rev", lambda x: x * lax.rev(x, (0, 1)), [(2, 3)]),
    ("flip", lambda x: x * jnp.flip(x), [(5,)]),
    ("rot90", lambda x: x * jnp.rot90(x), [(3, 3)]),
    ("roll", lambda x: x * jnp.roll(x, 2), [(5,)]),
    ("roll_axis", lambda x: x * jnp.roll(x, -1, axis=1), [(2, 3)]),
    ("squeeze", lambda x: jnp.squeeze(x**2, 1), [(2, 1, 3)]),
    ("expand_dims", lambda x: jnp.expand_dims(x**2, (0, 2)) * x, [(3,)]),
    ("broadcast_to", lambda x: jnp.broadcast_to(x**2, (3, 4)), [(4,)]),
    ("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x**2, (3, 2, 4), (1, 2)), [(2, 4)]),
    ("broadcast_operands", lambda x, y: x[:, None] * jnp.sin(y), [(3,), (4,)]),
    ("tile", lambda x: jnp.tile(x**2, (2, 2)), [(2, 3)]),
    ("repeat", lambda x: jnp.repeat(x**2, 3), [(3,)]),
    ("repeat_counts", lambda x: jnp.repeat(x**2, np.array([0, 1, 3]), axis=0), [(3, 2)]),
    ("concatenate", lambda x, y: jnp.concatenate([x, y, x * y]), [(3,), (3,)]),
    ("concatenate_constant", lambda x: jnp.concatenate([fixed(2), x**2, fixed(1)]), [(3,)]),
    ("concatenate_axis_1", lambda x, y: jnp.concatenate([x**2, y], axis=1), [(2, 2), (2, 3)]),
    ("stack", lambda x, y: jnp.stack([x, x * y, y, fixed(3)], axis=1), [(3,), (3,)]),
    ("vstack_hstack", lambda x, y: (jnp.vstack([x, y]), jnp.hstack([x, y])), [(3,), (3,)]),
    ("split", lambda x: [jnp.sin(part) for part in jnp.split(x, [1, 4])], [(6,)]),
    ("lax_split", lambda x: [part**2 for part in lax.split(x, (1, 2), axis=1)], [(2, 3)]),
    ("unstack", lambda x: [row**2 for row in jnp.unstack(x, axis=1)], [(2, 3)]),
    ("slice_strided", lambda x: lax.slice(x**2, (1, 0), (5, 2), (2, 1)), [(6, 2)]),
    ("pad_constant", lambda x: jnp.pad(x**2, ((1, 2), (0, 1))), [(2, 3)]),
    ("pad_varying_value", pad_by((1, 2, 0)), [(3,), ()]),
    ("pad_interior", pad_by((1, 0, 2)), [(3,), ()]),
    ("pad_negative", pad_by((-1, 1, 1)), [(4,), ()]),
    ("pad_only_value_varies", lambda v: lax.pad(jnp.asarray(fixed(2)), v, [(1, 1, 1)]), [()]),
    ("pad_reflect", lambda x: jnp.pad(x**2, 2, mode="reflect"), [(4,)]),
    ("pad_wrap", lambda x: jnp.pad(x**2, 2, mode="wrap"), [(3,)]),
    ("tril", lambda x: jnp.tril(x**2), [(3, 3)]),
    ("triu", lambda x: jnp.triu(x**2, 1), [(3, 3)]),
    ("diag_of_matrix", lambda x: jnp.diag(x**2), [(3, 3)]),
    ("diag_of_vector", lambda x: jnp.diag(x**2, 1), [(3,)]),
    ("trace", lambda x: jnp.trace(x @ x), [(3, 3)]),
    ("meshgrid", lambda x, y: jnp.multiply(*jnp.meshgrid(x, y)), [(3,), (2,)]),
    ("block", lambda x, y: jnp.block([[x, y], [y.T, x @ x]]), [(2, 2), (2, 2)]),
    ("optimization_barrier", lambda x, y: lax.optimization_barrier((x**2, y, x * y)), [(3,), (3,)]),
    ("reduce_precision", lambda x: lax.reduce_precision(x, 11, 52) ** 2, [(3,)]),
    (
        "reduce_precision_half",
        lambda x: lax.reduce_precision(x, 5, 10),
        [np.array([0.1, 1.3, -2.7])],
        {"tolerance": 2e-3, "why": "every derivative is rounded to ten bits, scaled or not"},
    ),
    ("convert_to_float32", lambda x: (x**2).astype(np.float32), [(3,)], {"tolerance": 1e-6}),
    (
        "bitcast_of_constant",
        lambda x: x * lax.bitcast_convert_type(np.float64(1.5).view(np.int64), x.dtype),
        [(3,)],
    ),
    ("real_imag", lambda x: jnp.real(x**2) * jnp.imag(x), [complex_fixed(3)]),
]


def along(fun):
    """Forward and reverse, along both axes."""
    return lambda x: [fun(x, axis, reverse) for axis in (0, 1) for reverse in (False, True)]


CUMULATIVE = [
    ("cumsum", along(lax.cumsum), [(3, 2)]),
    ("cumprod", along(lax.cumprod), [(3, 2)]),
    ("cumprod_with_zeros", lax.cumprod, [np.array([1.3, 0.0, -0.7, 0.0, 2.1])]),
    ("cummax", along(lax.cummax), [(3, 2)]),
    ("cummin", along(lax.cummin), [(3, 2)]),
    ("cummax_tied", along(lax.cummax), [np.array([[1.0, 2.0], [1.0, 3.0], [0.5, 3.0]])]),
    ("cumlogsumexp", along(lax.cumlogsumexp), [(3, 2)]),
    ("jnp_cumsum", lambda x: jnp.cumsum(x**2), [(2, 3)]),
    ("nancumsum", lambda x: jnp.nancumsum(x**2), [np.array([1.0, np.nan, 2.0])]),
    ("diff", lambda x: jnp.diff(x**2), [(5,)]),
    ("diff_twice", lambda x: jnp.diff(x**2, n=2, axis=0), [(4, 2)]),
    ("gradient", lambda x: jnp.gradient(x**2), [(5,)]),
    ("trapezoid", jnp.trapezoid, [(5,), (5,)]),
    ("interp", lambda x, xp, fp: jnp.interp(x, xp, fp), [(4,), np.arange(-2.0, 3.0) ** 3, (5,)]),
    ("interp_of_x", lambda x: jnp.interp(x, np.arange(-2.0, 3.0), fixed(5)), [(4,)]),
    ("interp_of_fp", lambda fp: jnp.interp(fixed(4), np.arange(-2.0, 3.0), fp), [(5,)]),
]


def pool(start, operation, window=(2, 3), strides=(1, 2), padding="VALID", **options):
    return lambda x: lax.reduce_window(x, start, operation, window, strides, padding, **options)


def max_pool_gradient(x, scale):
    """Its backward pass selects a maximum of every window and scatters to it."""
    return jax.grad(lambda x: jnp.sum(jnp.sin(scale * pool(-np.inf, lax.max)(x))))(x)


WINDOWS = [
    ("reduce_add", lambda x: lax.reduce(x**2, np.float64(0), lax.add, (1,)), [(3, 4)]),
    ("reduce_max", lambda x: lax.reduce(x**2, np.float64(-np.inf), lax.max, (0,)), [(3, 4)]),
    ("reduce_mul", lambda x: lax.reduce(x, np.float64(1), lax.mul, (0,)), [(3, 2)]),
    ("sum_pool", pool(0.0, lax.add), [(3, 5)]),
    ("sum_pool_same", pool(0.0, lax.add, padding="SAME"), [(3, 4)]),
    ("sum_pool_window_dilated", pool(0.0, lax.add, window_dilation=(2, 1)), [(4, 3)]),
    ("sum_pool_base_dilated", pool(0.0, lax.add, base_dilation=(2, 1)), [(3, 3)]),
    ("average_pool", lambda x: pool(0.0, lax.add)(x**2) / 6, [(3, 5)]),
    ("max_pool", pool(-np.inf, lax.max), [(3, 5)]),
    ("max_pool_same", pool(-np.inf, lax.max, padding="SAME"), [(3, 4)]),
    ("min_pool", pool(np.inf, lax.min), [(3, 5)]),
    ("max_pool_tied", pool(-np.inf, lax.max), [np.ones((3, 5))]),
    ("max_pool_gradient", max_pool_gradient, [(3, 5), ()]),
]

CASES = [
    *table("contraction", CONTRACTIONS),
    *table("convolution", convolution_rows()),
    *table("fourier", FOURIER),
    *table("shape", SHAPES),
    *table("cumulative", CUMULATIVE),
    *table("window", WINDOWS),
]
