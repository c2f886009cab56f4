"""Dtypes: single precision, complex, conversions, side arguments that have no derivative.

A case in single precision is held to the same function in double precision. References in another
precision or form than the case's own, and `tabulate`, serve the other modules of cases too.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from jax import lax

from ..case import Case, inexact_leaves, nested_jvp, ORDER


def tabulate(family, rows, **options):
    """Cases from rows `(name, fun, {label: arguments})`.

    `arguments` is a tuple, or anything else for a function of one argument. Every argument becomes
    a NumPy array (of the dtype it has already, if it has one).
    """
    cases = []
    for name, fun, points in rows:
        for label, args in points.items():
            args = args if isinstance(args, tuple) else (args,)
            point = tuple(np.asarray(arg) for arg in args)
            cases.append(Case(f"{family}/{name}@{label}", fun, point, **options))
    return cases


def rewritten(fun):
    """A `Case.reference`: nested `jvp` of a function equal to the one of the case."""
    return lambda curve, order: nested_jvp(lambda s: fun(*curve(s)), order)


def high_precision(fun, digits=60):
    """A `Case.reference` for an elementwise function of real arrays of one shape.

    `fun` takes and returns mpmath numbers. Nothing but the curve is ever rounded to float64.
    """

    def reference(curve, order):
        by_argument = zip(*nested_jvp(curve, ORDER), strict=True)
        args = [[np.asarray(d, np.float64) for d in derivatives] for derivatives in by_argument]
        shape = args[0][0].shape
        values = np.empty((order + 1, *shape))
        with mpmath.workdps(digits):
            for index in np.ndindex(shape):
                polynomials = [
                    [mpmath.mpf(float(d[index])) / math.factorial(j) for j, d in enumerate(arg)]
                    for arg in args
                ]

                def along(s, polynomials=polynomials):
                    powers = [s**j for j in range(ORDER + 1)]
                    return fun(*(mpmath.fdot(terms, powers) for terms in polynomials))

                for k, term in enumerate(mpmath.taylor(along, 0, order, chop=False)):
                    values[(k, *index)] = term * math.factorial(k)
        return list(values)

    return reference


def widened(fun):
    """A `Case.reference` for a case in single precision: nested `jvp` in double precision."""
    wide = {"float32": jnp.float64, "complex64": jnp.complex128}

    def reference(curve, order):
        def along(s):
            args = (x.astype(wide.get(x.dtype.name, x.dtype)) for x in curve(s))
            return inexact_leaves(fun(*args))

        return nested_jvp(along, order)

    return reference


REAL = [-1.7, -0.6, 0.4, 2.3]
POSITIVE = [0.3, 0.9, 1.7, 4.2]
MATRIX = [[0.4, -1.1], [0.7, 0.3], [-0.2, 0.9]]
MASK = np.array([True, False, True, True])
COUNTS = np.array([3, 0, -2, 1], np.int32)
HALF = np.float32(0.5)

f32 = partial(np.asarray, dtype=np.float32)
c64 = partial(np.asarray, dtype=np.complex64)
table = partial(tabulate, "dtypes")


def dense(w, b, x):
    return jnp.tanh(w @ x + b)


# Functions that compute in the dtype of their arguments, whatever it is.
SINGLE = [
    ("neg_add_mul", lambda x: -x * x + 3.0 * x, {"float32": f32(REAL)}),
    ("exp", jnp.exp, {"float32": f32(REAL)}),
    ("log", jnp.log, {"float32": f32(POSITIVE)}),
    ("log1p", jnp.log1p, {"float32": f32(POSITIVE), "float32_1e-4": f32([1e-4])}),
    ("sin", jnp.sin, {"float32": f32(REAL), "float32_scalar": f32(0.7)}),
    ("tan", jnp.tan, {"float32": f32([-0.9, 0.3])}),
    ("tanh", jnp.tanh, {"float32": f32(REAL)}),
    ("logistic", lax.logistic, {"float32": f32(REAL), "float32_4": f32([4.0])}),
    ("sqrt", jnp.sqrt, {"float32": f32(POSITIVE)}),
    ("rsqrt", lax.rsqrt, {"float32": f32(POSITIVE)}),
    ("integer_pow", lambda x: x**3 + x**-2, {"float32": f32(REAL)}),
    ("pow", lambda x: x**2.5, {"float32": f32(POSITIVE)}),
    ("pow_both", lax.pow, {"float32": (f32(POSITIVE), f32(REAL))}),
    ("div", lax.div, {"float32": (f32(REAL), f32(POSITIVE))}),
    ("atan2", jnp.atan2, {"float32": (f32(REAL), f32(POSITIVE))}),
    ("atan", jnp.atan, {"float32": f32(REAL)}),
    ("erf", lax.erf, {"float32": f32(REAL)}),
    ("logaddexp", jnp.logaddexp, {"float32": (f32(REAL), f32(POSITIVE))}),
    ("softplus", jax.nn.softplus, {"float32": f32(REAL)}),
    ("gelu", jax.nn.gelu, {"float32": f32(REAL)}),
    ("softmax", jax.nn.softmax, {"float32": f32(REAL)}),
    ("logsumexp", jax.nn.logsumexp, {"float32": f32(REAL)}),
    ("maximum", lambda x: jnp.maximum(x, 0) + jnp.abs(x), {"float32": f32([-1.7, 0.0, 0.4])}),
    ("sum_prod", lambda x: jnp.sum(x) * jnp.prod(x), {"float32": f32(POSITIVE)}),
    ("dense", dense, {"float32": (f32(MATRIX), f32([0.1, -0.3, 0.5]), f32([0.8, -0.6]))}),
    ("constant", lambda x: jnp.sin(x) + jnp.asarray(HALF, x.dtype), {"float32": f32(REAL)}),
    ("python_scalars", lambda x: 2 * x + 0.5 * x**2 - 1, {"float32": f32(REAL)}),
    ("exp", jnp.exp, {"complex64": c64([0.3 + 1.1j, -0.7 - 0.2j])}),
    ("log", jnp.log, {"complex64": c64([0.3 + 1.1j, 0.7 - 0.2j])}),
    ("mul_conj", lambda z: jnp.sin(z) * jnp.conj(z), {"complex64": c64([0.3 + 1.1j, -0.7j])}),
    ("div", lambda z: (1.0 + z) / (2.0 - z), {"complex64": c64([0.3 + 1.1j, -0.7 - 0.2j])}),
    ("abs", lambda z: jnp.abs(z) + jnp.angle(z), {"complex64": c64([0.3 + 1.1j, 0.7 - 0.2j])}),
    ("complex", lambda x, y: jnp.exp(lax.complex(x, y)).real, {"float32": (f32(REAL),) * 2}),
    ("real_imag", lambda z: jnp.real(z) * jnp.imag(z), {"complex64": c64([0.3 + 1.1j, 2.0j])}),
    ("both_precisions", lambda x, y: (jnp.sin(x), jnp.exp(y)), {"f32_f64": (f32(REAL), REAL)}),
    ("counts", lambda x, n: jnp.sin(x) * n.astype(x.dtype), {"float32": (f32(REAL), COUNTS)}),
]


def through_float32(x):
    return jnp.sin(x.astype(jnp.float32)).astype(jnp.float64) * x


def through_float64(x):
    return jnp.exp(jnp.sin(x.astype(jnp.float64))).astype(jnp.float32) * x


def through_complex(x):
    return jnp.exp(x.astype(jnp.complex128) * 1j).imag


def through_complex64(x):
    return jnp.exp(x.astype(jnp.complex64)).real.astype(jnp.float64)


def random_scale(x, key):
    return x * jax.random.normal(jax.random.wrap_key_data(key), x.shape, x.dtype)


def clear_low_bits(x):
    bits = lax.bitcast_convert_type(x, jnp.int64) & ~np.int64(0xFFFF)
    return jnp.sin(x) * lax.bitcast_convert_type(bits, x.dtype)


def loop_with_counter(x, n):
    """An integer carry next to a real one."""

    def body(i, carry):
        y, total = carry
        return y * jnp.sin(y) + i.astype(y.dtype), total + n

    return lax.fori_loop(0, 3, body, (x, jnp.zeros_like(n)))


KEY = np.array([3, 17], np.uint32)

# Conversions, and arguments, constants and outputs without derivatives.
DOUBLE = [
    ("to_int", lambda x: x * x.astype(jnp.int32).astype(x.dtype), {"generic": REAL}),
    ("to_int_alone", lambda x: x.astype(jnp.int64).astype(x.dtype), {"generic": REAL}),
    ("to_int8", lambda x: x + (10.0 * x).astype(jnp.int8).astype(x.dtype), {"generic": REAL}),
    ("to_bool", lambda x: x * x.astype(jnp.bool_).astype(x.dtype), {"generic": [0.0, 1.3]}),
    ("from_bool", lambda x: jnp.exp(x) * (x > 0.0).astype(x.dtype), {"generic": REAL}),
    ("argmax", lambda x: x * jnp.argmax(x).astype(x.dtype), {"generic": REAL}),
    ("bitcast", clear_low_bits, {"generic": REAL}),
    ("through_complex", through_complex, {"generic": REAL, "scalar": 0.7}),
    ("mask", lambda x, m: jnp.where(m, jnp.sin(x), x**2), {"bool": (REAL, MASK)}),
    ("mask_times", lambda x, m: jnp.sin(x) * m.astype(x.dtype), {"bool": (REAL, MASK)}),
    ("counts", lambda x, n: jnp.sin(x) * n.astype(x.dtype), {"int32": (REAL, COUNTS)}),
    ("index", lambda x, i: jnp.exp(x)[i], {"int32": (REAL, np.array([3, 0, 0], np.int32))}),
    ("index", lambda x, i: jnp.exp(x)[i], {"uint8": (REAL, np.array([2, 1], np.uint8))}),
    ("dynamic_index", lambda x, i: x[i] * x, {"int64": (REAL, np.array(2, np.int64))}),
    ("integer_outputs", lambda x, n: (x * x, n + 1, x > 0.0), {"int32": (REAL, COUNTS)}),
    ("random_scale", random_scale, {"uint32": (REAL, KEY)}),
    ("loop_with_counter", loop_with_counter, {"int32": (REAL, COUNTS)}),
    (
        "cond_on_bool",
        lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x),
        {"bool": (np.array(True), REAL)},
    ),
    ("unused_argument", lambda x, y: jnp.sin(x), {"generic": (REAL, POSITIVE)}),
    ("constant_output", lambda x: (jnp.ones(2), 3.0, jnp.sin(x)), {"generic": REAL}),
    (
        "empty_argument",
        lambda x, y: jnp.concatenate([x, jnp.sin(y)]),
        {"generic": (np.zeros(0), REAL)},
    ),
    ("scalar", lambda x: jnp.sin(x) * x, {"0-d": 0.7}),
    ("python_int", lambda x: 2 * x + x / 3 - 1, {"generic": REAL}),
    ("python_float", lambda x: 0.5 * jnp.sin(x) + 1.0, {"generic": REAL}),
    ("python_complex", lambda z: (1.0 + 2.0j) * z + 1j, {"generic": [0.3 + 1.1j, -0.7 - 0.2j]}),
    ("numpy_scalar", lambda x: np.float64(0.3) * x**2, {"generic": REAL}),
    ("numpy_array", lambda x: np.arange(4.0) * jnp.exp(x), {"generic": REAL}),
    ("numpy_float32", lambda x: x * jnp.asarray(HALF, x.dtype) + float(HALF), {"generic": REAL}),
    ("weak_array", lambda x: jnp.asarray(2.0) * x + jnp.asarray(1), {"generic": REAL}),
    ("weak_where", lambda x: jnp.where(x > 0.0, 1.0, 2.0) * x, {"generic": REAL}),
    ("weak_into_jit", lambda x: jax.jit(lambda a, x: a * jnp.sin(x))(2.0, x), {"generic": REAL}),
    ("weak_carry", lambda x: lax.fori_loop(0, 3, lambda i, y: y * 0.5 + x, x), {"generic": REAL}),
    ("iota", lambda x: x * lax.iota(jnp.float64, 4) + x**2, {"generic": REAL}),
]

CASES = []
for row in SINGLE:
    CASES += table([row], tolerance=2e-4, reference=widened(row[1]), why="single precision")
for name, fun, equal, point in [
    ("through_float32", through_float32, lambda x: jnp.sin(x) * x, REAL),
    ("through_float64", through_float64, lambda x: jnp.exp(jnp.sin(x)) * x, f32(REAL)),
    ("through_complex64", through_complex64, jnp.exp, REAL),
]:
    row = (name, fun, {"generic": point})
    CASES += table([row], tolerance=2e-4, reference=widened(equal), why="passes single precision")
CASES += table(DOUBLE)
