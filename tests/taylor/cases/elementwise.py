"""Elementwise primitives and functions of `jax.numpy`, at generic and at special points."""

from functools import partial

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
from jax import lax
from jax.scipy.special import xlog1py, xlogy

from .dtypes import high_precision, rewritten, tabulate


REAL = [-1.7, -0.6, 0.4, 2.3]
OTHER = [0.9, -1.4, -0.3, 1.6]
PAIR = (REAL, OTHER)
POSITIVE = [0.3, 0.9, 1.7, 4.2]
UNIT = [-0.8, -0.25, 0.35, 0.7]
TIES = ([0.4, -1.2], [0.4, -1.2])
INTEGERS = [-2.0, 0.0, 3.0]
HALVES = [-1.5, -0.5, 0.5, 2.5]
INDICES = np.array([2, -1, 0, 5], np.int32)
ZERO = [0.0]

table = partial(tabulate, "elementwise")

SMOOTH = [
    ("neg", lax.neg, {"generic": REAL}),
    ("positive", jnp.positive, {"generic": REAL}),
    ("exp", jnp.exp, {"generic": REAL, "0": ZERO, "-20": [-20.0], "20": [20.0]}),
    ("exp2", jnp.exp2, {"generic": REAL, "0": ZERO}),
    ("expm1", jnp.expm1, {"generic": REAL, "0": ZERO, "1e-6": [1e-6]}),
    ("log", jnp.log, {"generic": POSITIVE, "1": [1.0], "1e8": [1e8]}),
    ("log2", jnp.log2, {"generic": POSITIVE}),
    ("log10", jnp.log10, {"generic": POSITIVE}),
    ("log1p", jnp.log1p, {"generic": UNIT, "0": ZERO, "1e-6": [1e-6], "1e6": [1e6]}),
    ("sin", jnp.sin, {"generic": REAL, "0": ZERO, "100": [100.0]}),
    ("cos", jnp.cos, {"generic": REAL, "0": ZERO, "-100": [-100.0]}),
    ("tan", jnp.tan, {"generic": [-1.1, -0.4, 0.3, 2.3], "0": ZERO}),
    ("asin", jnp.asin, {"generic": UNIT, "0": ZERO}),
    ("acos", jnp.acos, {"generic": UNIT, "0": ZERO}),
    ("atan", jnp.atan, {"generic": REAL, "0": ZERO, "1e3": [1e3]}),
    ("sinh", jnp.sinh, {"generic": REAL, "0": ZERO, "10": [10.0]}),
    ("cosh", jnp.cosh, {"generic": REAL, "0": ZERO, "-10": [-10.0]}),
    ("tanh", jnp.tanh, {"generic": REAL, "0": ZERO}),
    ("asinh", jnp.asinh, {"generic": REAL, "0": ZERO, "1e-6": [1e-6], "-1e4": [-1e4]}),
    ("acosh", jnp.acosh, {"generic": [1.3, 1.9, 3.5], "1e4": [1e4]}),
    ("atanh", jnp.atanh, {"generic": UNIT, "0": ZERO, "1e-6": [1e-6]}),
    ("logistic", lax.logistic, {"generic": REAL, "0": ZERO}),
    ("sqrt", jnp.sqrt, {"generic": POSITIVE, "1e-2": [1e-2], "1e6": [1e6]}),
    ("rsqrt", lax.rsqrt, {"generic": POSITIVE, "1e6": [1e6]}),
    ("cbrt", jnp.cbrt, {"generic": REAL, "-8": [-8.0]}),
    ("square", jnp.square, {"generic": REAL, "0": ZERO}),
    ("reciprocal", jnp.reciprocal, {"generic": REAL, "1e-2": [1e-2]}),
    ("erfc", lax.erfc, {"generic": REAL, "4": [4.0]}),
    ("sinc", jnp.sinc, {"generic": REAL, "0": ZERO, "zero": [0.5, 1.0]}),
    ("deg2rad", jnp.deg2rad, {"generic": REAL}),
    ("rad2deg", jnp.rad2deg, {"generic": REAL}),
    ("exp_log", lambda x: jnp.exp(jnp.log(x) * 2.0), {"generic": POSITIVE}),
    ("tanh_of_square", lambda x: jnp.tanh(x * x), {"0": ZERO}),
]

# Derivatives are zero, of one sign, or chosen by convention at the kink.
PIECEWISE = [
    ("abs", jnp.abs, {"generic": REAL, "0": ZERO, "-0": [-0.0]}),
    ("fabs_of_product", lambda x: jnp.fabs(x) * x, {"0": ZERO}),
    ("sign", lambda x: jnp.sign(x) * x, {"generic": REAL, "0": ZERO}),
    ("sign_alone", jnp.sign, {"generic": REAL}),
    ("floor", lambda x: x * jnp.floor(x), {"generic": REAL, "integers": INTEGERS}),
    ("ceil", lambda x: x * jnp.ceil(x), {"generic": REAL, "integers": INTEGERS}),
    ("round", lambda x: x * lax.round(x), {"generic": REAL, "halves": HALVES}),
    ("round_even", lambda x: x * jnp.round(x), {"generic": REAL, "halves": HALVES}),
    ("round_decimals", lambda x: x + jnp.round(x, 1), {"generic": REAL}),
    ("rint", lambda x: x - jnp.rint(x), {"generic": REAL, "halves": HALVES}),
    ("trunc", lambda x: x * jnp.trunc(x), {"generic": REAL, "integers": INTEGERS}),
    ("modf", jnp.modf, {"generic": REAL}),
    ("frexp", lambda x: jnp.frexp(x)[0], {"generic": REAL}),
    ("ldexp", jnp.ldexp, {"generic": (REAL, INDICES)}),
    ("copysign", jnp.copysign, {"generic": PAIR}),
    ("signbit", lambda x: jnp.where(jnp.signbit(x), x * x, x), {"generic": REAL}),
    ("heaviside", lambda x, h: x * jnp.heaviside(x, h), {"generic": PAIR}),
    ("heaviside", jnp.heaviside, {"0": (ZERO, [0.3])}),
    ("nan_to_num", jnp.nan_to_num, {"generic": REAL, "nan": [np.nan], "inf": [np.inf, -np.inf]}),
    ("reduce_precision", lambda x: x * lax.reduce_precision(x, 8, 7), {"generic": REAL}),
    ("stop_gradient", lambda x: x * lax.stop_gradient(jnp.sin(x)), {"generic": REAL}),
    ("isfinite", lambda x: jnp.where(jnp.isfinite(x), jnp.exp(x), 0.0), {"generic": REAL}),
    ("greater", lambda x: (x > 0.4).astype(x.dtype) * x, {"generic": REAL}),
    ("comparisons", lambda x, y: ((x >= y) ^ (x != y)).astype(x.dtype) + x, {"ties": TIES}),
    ("clip", lambda x: jnp.clip(x, -0.6, 1.0), {"generic": [-1.7, 0.4, 2.3], "kink": [-0.6, 1.0]}),
    ("clamp", lambda x: lax.clamp(-0.6, x, 1.0), {"generic": [-1.7, 0.4], "kink": [-0.6, 1.0]}),
    (
        "clamp_varying",
        lax.clamp,
        {"generic": ([-1.0, 0.5, -1.0], [-1.5, 1.0, 2.0], [1.0, 1.5, 1.2]), "ties": ([0.4],) * 3},
    ),
    ("maximum", jnp.maximum, {"generic": PAIR, "ties": TIES}),
    ("minimum", jnp.minimum, {"generic": PAIR, "ties": TIES}),
    ("fmax", jnp.fmax, {"generic": PAIR, "ties": TIES}),
    ("fmin", jnp.fmin, {"generic": PAIR, "nan": ([0.5, np.nan], [np.nan, 0.7])}),
    ("maximum_itself", lambda x: jnp.maximum(x, x) * x, {"generic": REAL, "0": ZERO}),
    ("relu", lambda x: jnp.maximum(x, 0.0), {"generic": REAL, "0": ZERO}),
    ("relu_cubed", lambda x: jnp.maximum(x, 0.0) ** 3, {"0": ZERO}),
    ("where", lambda x: jnp.where(x > 0.4, jnp.sin(x), x**2), {"generic": REAL, "kink": [0.4]}),
    (
        "where_untaken_nan",
        lambda x: jnp.where(x > 0.0, jnp.sqrt(x), x),
        {"negative": [-1.0, 0.0, 2.0]},
    ),
    (
        "where_safe_log",
        lambda x: jnp.where(x > 0.0, jnp.log(jnp.where(x > 0.0, x, 1.0)), 0.0),
        {"generic": REAL, "0": ZERO},
    ),
    (
        "select_n",
        lambda i, x, y: lax.select_n(i, x, y, x * y),
        {"generic": (np.array([0, 1, 2, 1], np.int32), REAL, OTHER)},
    ),
    ("select", lambda x: jnp.select([x < 0.0, x < 1.0], [x, x**2], jnp.exp(x)), {"generic": REAL}),
    (
        "piecewise",
        lambda x: jnp.piecewise(x, [x < 0.0], [lambda x: x**2, jnp.sin]),
        {"generic": REAL, "0": ZERO},
    ),
    ("rem", lax.rem, {"generic": PAIR, "multiple": ([2.0, -3.0], [1.0, 1.5])}),
    ("fmod", jnp.fmod, {"generic": PAIR}),
    ("mod", jnp.mod, {"generic": PAIR, "multiple": ([2.0, -3.0], [1.0, 1.5])}),
    ("remainder", lambda x: jnp.remainder(x, 0.7), {"generic": REAL}),
    ("floor_divide", lambda x, y: x * jnp.floor_divide(x, y), {"generic": PAIR}),
    ("divmod", jnp.divmod, {"generic": PAIR}),
    (
        "nextafter",
        lambda x, y: x * jnp.nextafter(lax.stop_gradient(x), lax.stop_gradient(y)),
        {"generic": PAIR},
    ),
]


def integer_array_pow(x, n):
    # JAX's own rule promotes the exponent implicitly, which strict promotion forbids.
    with jax.numpy_dtype_promotion("standard"):
        return lax.pow(x, n)


BINARY = [
    ("add", lax.add, {"generic": PAIR}),
    ("sub", lax.sub, {"generic": PAIR}),
    ("mul", lax.mul, {"generic": PAIR, "0": (ZERO, ZERO)}),
    ("mul_itself", lambda x: x * x * x, {"generic": REAL, "0": ZERO}),
    ("div", lax.div, {"generic": PAIR, "0/y": (ZERO, [1.3])}),
    ("div_numerator", lambda x: x / 0.7, {"generic": REAL}),
    ("div_denominator", lambda x: 0.7 / x, {"generic": REAL}),
    ("true_divide", lambda x: (x + 1.0) / (x * x + 1.0), {"generic": REAL, "0": ZERO}),
    (
        "atan2",
        jnp.atan2,
        {"generic": PAIR, "(1,0)": ([1.0], ZERO), "(0,1)": (ZERO, [1.0])}
        | {"(-1,0)": ([-1.0], ZERO), "(0,-1)": (ZERO, [-1.0]), "equal": ([-0.5], [-0.5])},
    ),
    (
        "hypot",
        jnp.hypot,
        {"generic": PAIR, "(3,-4)": ([3.0], [-4.0]), "(0,1)": (ZERO, [1.0])}
        # max(|x|, |y|) ties in these two: the derivatives are those of JAX's formula, not hypot's.
        | {"equal": TIES, "(0,0)": (ZERO, ZERO)},
    ),
    (
        "logaddexp",
        jnp.logaddexp,
        {"generic": PAIR, "ties": TIES, "far": ([40.0], [-1.0]), "-inf": ([-np.inf], [0.5])},
    ),
    ("logaddexp2", jnp.logaddexp2, {"generic": PAIR, "ties": TIES}),
    ("xlogy", xlogy, {"generic": (REAL, POSITIVE), "(0,y)": (ZERO, [1.7])}),
    (
        "xlog1py",
        xlog1py,
        {"generic": (REAL, UNIT), "(0,y)": (ZERO, [-0.4]), "(x,0)": ([0.8], ZERO)},
    ),
    (
        "pow_both",
        lax.pow,
        {"generic": (POSITIVE, REAL), "(1,0)": ([1.0], ZERO), "(2,2)": ([2.0], [2.0])},
    ),
    ("pow_array", lambda x: x ** np.array([0.5, 2.0, -1.3, 3.0]), {"generic": POSITIVE}),
    ("pow_integer_array", integer_array_pow, {"generic": (REAL, INDICES)}),
    ("pow_constant_base", lambda x: 2.5**x, {"generic": REAL, "0": ZERO}),
    ("pow_base_one", lambda x: jnp.power(1.0, x), {"generic": REAL}),
    ("pow_base_zero", lambda x: jnp.power(0.0, x), {"positive": [1.5]}),
    ("pow_itself", lambda x: x**x, {"generic": POSITIVE, "1": [1.0]}),
    ("float_power", jnp.float_power, {"generic": (POSITIVE, REAL)}),
]

INTEGER_POW = [
    (f"integer_pow({n})", partial(lax.integer_pow, y=n), {"generic": REAL}) for n in range(-5, 9)
]
INTEGER_POW += [
    (f"integer_pow({n})", partial(lax.integer_pow, y=n), {"0": ZERO})
    for n in (0, 1, 2, 3, 4, 5, 6, 8)
]


def real_pow(p):
    return lambda x: lax.pow(x, jnp.full_like(x, p))


REAL_POW = [
    (f"pow({p})", real_pow(p), {"positive": POSITIVE})
    for p in (0.0, 0.5, 1.0, 1.5, 2.0, 2.7, 4.5, -0.5, -1.0, -1.5, -3.2)
]
# Integer-valued real exponents: log(x) is no way to these.
NEGATIVE = [-1.7, -0.6]
REAL_POW += [(f"pow({p})", real_pow(p), {"negative": NEGATIVE}) for p in (0.0, 1.0, 2.0, 3.0, -2.0)]
REAL_POW += [
    ("operator_pow(2.0)", lambda x: x**2.0, {"negative": NEGATIVE}),
    ("operator_pow(3.0)", lambda x: x**3.0, {"negative": NEGATIVE}),
    ("operator_pow(-0.5)", lambda x: x**-0.5, {"generic": POSITIVE}),
]


def pow_cases_at_zero():
    """x**p at 0 for p a natural number of real dtype, or an array of integers."""
    rows = [(f"pow({p})", real_pow(p), int(p)) for p in (0.0, 1.0, 2.0, 3.0, 5.0, 7.0)]
    rows += [
        ("operator_pow(0.0)", lambda x: x**0.0, 0),
        ("operator_pow(2.0)", lambda x: x**2.0, 2),
        ("operator_pow(3.0)", lambda x: x**3.0, 3),
        ("pow_of_square(1.0)", lambda x: real_pow(1.0)(x * x), 2),
    ]
    why = "the rule of pow gives p * x**(p - 1), which is 0 * inf once p has come down to 0"
    cases = []
    for name, fun, n in rows:
        reference = rewritten(partial(lax.integer_pow, y=n))
        cases += table([(name, fun, {"0": ZERO})], reference=reference, why=why)
    row = ("pow_integer_array", integer_array_pow, {"0": ([0.0] * 4, np.arange(4, dtype=np.int32))})
    powers = rewritten(lambda x, _: jnp.stack([lax.integer_pow(x[i], i) for i in range(4)]))
    return cases + table([row], reference=powers, why=why)


# Infinite derivatives: only the orders at which they are finite (often the value alone) count.
SINGULAR = [
    ("sqrt", jnp.sqrt, {"0": ZERO}),
    ("rsqrt", lax.rsqrt, {"0": ZERO}),
    ("cbrt", jnp.cbrt, {"0": ZERO}),
    ("log", jnp.log, {"0": ZERO}),
    ("log1p", jnp.log1p, {"-1": [-1.0]}),
    ("asin", jnp.asin, {"1": [1.0]}),
    ("acos", jnp.acos, {"-1": [-1.0]}),
    ("acosh", jnp.acosh, {"1": [1.0]}),
    ("atanh", jnp.atanh, {"1": [1.0]}),
    ("reciprocal", jnp.reciprocal, {"0": ZERO}),
    ("integer_pow(-2)", partial(lax.integer_pow, y=-2), {"0": ZERO}),
    ("pow(0.5)", real_pow(0.5), {"0": ZERO, "negative": [-1.0]}),
    ("pow(2.5)", real_pow(2.5), {"0": ZERO}),
    ("xlogy", xlogy, {"(0,0)": (ZERO, ZERO)}),
    ("atan2", jnp.atan2, {"(0,0)": (ZERO, ZERO)}),
]


TAILS = [
    ("logistic", lax.logistic, lambda x: 1 / (1 + mpmath.exp(-x)), (8.0, -8.0, 30.0, -30.0)),
    ("tanh", jnp.tanh, mpmath.tanh, (8.0, -8.0, 30.0, -30.0)),
    ("expm1", jnp.expm1, mpmath.expm1, (-20.0,)),
]


def tail_cases():
    """Saturated functions: each derivative is held to its own size, however small."""
    why = "1 - f(x) or 1 + f(x) cancels in the rule that nested jvp applies"
    cases = []
    for name, fun, exact, points in TAILS:
        row = (name, fun, {f"{x:g}": [x] for x in points})
        cases += table([row], reference=high_precision(exact), why=why)
    return cases


CASES = table(SMOOTH + PIECEWISE + BINARY + INTEGER_POW + REAL_POW)
CASES += table(SINGULAR, finite=False, why="the function has a branch point or a pole here")
CASES += table(
    [("pow_both", lax.pow, {"(0,1)": (ZERO, [1.0]), "(0,2)": (ZERO, [2.0])})],
    orders=1,
    why="x**y with y varying has log(x) in its further derivatives",
)
CASES += table(
    [("div_itself", lambda x: x / x, {"generic": REAL})],
    absolute=1e-12,
    why="all derivatives are zero, by cancellation",
)
CASES += pow_cases_at_zero() + tail_cases()
