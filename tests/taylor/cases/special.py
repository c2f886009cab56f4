"""Special functions of `jax.scipy.special`, and analytic functions of complex arguments."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import mpmath
import numpy as np
from jax import lax

from .dtypes import high_precision, rewritten, tabulate


REAL = [-1.7, -0.6, 0.4, 2.3]
OTHER = [0.9, -1.4, -0.3, 1.6]
POSITIVE = [0.4, 0.9, 1.7, 4.2]
POSITIVE2 = [1.3, 0.6, 2.9, 1.1]
UNIT = [-0.8, -0.25, 0.35, 0.7]
FRACTION = [0.15, 0.4, 0.85]
NEGATIVE = [-0.5, -1.3]
ZERO = [0.0]

table = partial(tabulate, "special")


def with_standard_promotion(fun):
    """JAX's own code of some functions promotes implicitly, which strict promotion forbids."""

    def wrapped(*args):
        with jax.numpy_dtype_promotion("standard"):
            return fun(*args)

    return wrapped


def normal_quantile(p):
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


ERROR_FUNCTIONS = [
    ("erf", jsp.erf, {"generic": REAL, "0": ZERO, "4": [4.0]}),
    ("erfc", jsp.erfc, {"0": ZERO, "-3": [-3.0], "10": [10.0]}),
    ("erfcx", jsp.erfcx, {"generic": REAL}),
    ("erf_inv", lax.erf_inv, {"generic": UNIT, "0": ZERO, "0.99": [0.99]}),
    ("ndtr", jsp.ndtr, {"generic": REAL, "0": ZERO, "-6": [-6.0]}),
    ("log_ndtr", jsp.log_ndtr, {"generic": REAL, "-6": [-6.0], "6": [6.0]}),
    ("dawsn", jsp.dawsn, {"generic": REAL, "0": ZERO}),
    ("fresnel", jsp.fresnel, {"generic": REAL}),
    ("owens_t", jsp.owens_t, {"generic": ([0.4, -0.9], [0.7, 0.3])}),
]

GAMMA_FUNCTIONS = [
    ("lgamma", lax.lgamma, {"generic": POSITIVE, "negative": NEGATIVE, "1": [1.0], "50": [50.0]}),
    ("gammaln", jsp.gammaln, {"generic": POSITIVE}),
    ("digamma", jsp.digamma, {"generic": POSITIVE, "negative": NEGATIVE, "50": [50.0]}),
    ("polygamma(1)", lambda x: jsp.polygamma(1, x), {"generic": POSITIVE}),
    ("polygamma(3)", lambda x: lax.polygamma(jnp.full_like(x, 3), x), {"generic": POSITIVE}),
    ("gamma", jsp.gamma, {"generic": POSITIVE, "negative": NEGATIVE}),
    ("factorial", jsp.factorial, {"generic": POSITIVE}),
    ("multigammaln", lambda x: jsp.multigammaln(x, 2), {"generic": [1.4, 2.9]}),
    ("gammainc(0.5)", lambda x: jsp.gammainc(0.5, x), {"generic": POSITIVE}),
    ("gammainc(3)", lambda x: jsp.gammainc(3.0, x), {"generic": POSITIVE, "12": [12.0]}),
    ("gammaincc(0.5)", lambda x: jsp.gammaincc(0.5, x), {"generic": POSITIVE}),
    ("gammaincc(3)", lambda x: jsp.gammaincc(3.0, x), {"generic": POSITIVE, "12": [12.0]}),
    ("betainc", lambda x: jsp.betainc(1.5, 2.5, x), {"generic": FRACTION, "symmetric": [0.5]}),
    ("betainc(2,3)", lambda x: jsp.betainc(2.0, 3.0, x), {"generic": FRACTION, "1e-3": [1e-3]}),
    ("comb", lambda n: jsp.comb(n, 2.0), {"generic": [4.3, 6.1]}),
]

OTHER_FUNCTIONS = [
    ("i0e", jsp.i0e, {"generic": REAL, "20": [20.0]}),
    ("i1e", jsp.i1e, {"generic": REAL, "20": [20.0]}),
    ("i0", jsp.i0, {"generic": REAL}),
    ("i1", jsp.i1, {"generic": REAL}),
    ("jnp_i0", jnp.i0, {"generic": REAL}),
    ("expi", jsp.expi, {"generic": [0.4, 1.9], "negative": [-0.7, -2.1]}),
    ("spence", jsp.spence, {"generic": [0.3, 0.8, 1.7, 2.6]}),
    ("sici", jsp.sici, {"generic": REAL}),
    ("boxcox", jsp.boxcox, {"generic": (POSITIVE, REAL)}),
    ("boxcox1p", jsp.boxcox1p, {"generic": (POSITIVE, REAL)}),
    ("gammasgn", lambda x: x * jsp.gammasgn(x), {"generic": REAL}),
    ("sinc_product", lambda x, y: jnp.sinc(x * y), {"0": (ZERO, [1.3])}),
]

ENTROPIES = [
    ("entr", jsp.entr, {"generic": POSITIVE}),
    ("rel_entr", jsp.rel_entr, {"generic": (POSITIVE, POSITIVE2), "equal": ([0.7], [0.7])}),
    ("kl_div", jsp.kl_div, {"generic": (POSITIVE, POSITIVE2)}),
    ("xlogy", jsp.xlogy, {"generic": (OTHER, POSITIVE), "equal": ([0.7], [0.7])}),
    ("xlogx", lambda x: jsp.xlogy(x, x), {"generic": POSITIVE}),
    ("expit", jsp.expit, {"generic": OTHER}),
    ("logit", jsp.logit, {"generic": FRACTION, "0.5": [0.5]}),
    ("logit_of_expit", lambda x: jsp.logit(jsp.expit(x)), {"generic": REAL}),
    (
        "logsumexp",
        jsp.logsumexp,
        {"generic": REAL, "ties": [0.5, 0.5], "-inf": [0.3, -np.inf, 1.1]},
    ),
    (
        "logsumexp_weights",
        lambda x, b: jsp.logsumexp(x, b=b),
        {"generic": (REAL, POSITIVE), "zero_weight": (REAL, [0.5, 0.0, 1.2, 0.3])},
    ),
    (
        "logsumexp_sign",
        lambda x, b: jsp.logsumexp(x, b=b, return_sign=True)[0],
        {"generic": (REAL, OTHER)},
    ),
    (
        "logsumexp_axis",
        lambda x: jsp.logsumexp(x, axis=1, keepdims=True),
        {"generic": [[0.3, -1.0, 2.0], [0.9, 0.4, -0.2]]},
    ),
    ("softmax", jsp.softmax, {"generic": REAL, "ties": [0.5, 0.5, 0.5]}),
    ("log_softmax", jsp.log_softmax, {"generic": REAL, "far": [30.0, -5.0]}),
]

Z = [0.3 + 1.1j, -0.7 - 0.2j, 1.4 - 0.8j]
W = [1.2 - 0.4j, 0.5 + 0.9j, -0.3 + 0.6j]
ZEROZ = [0.0j]

COMPLEX = [
    ("exp", jnp.exp, {"complex": Z, "complex_0": ZEROZ}),
    ("expm1", jnp.expm1, {"complex": Z}),
    ("log", jnp.log, {"complex": Z}),
    ("log1p", jnp.log1p, {"complex": Z}),
    ("sin", jnp.sin, {"complex": Z}),
    ("cos", jnp.cos, {"complex": Z}),
    ("tan", jnp.tan, {"complex": Z}),
    ("sinh", jnp.sinh, {"complex": Z}),
    ("cosh", jnp.cosh, {"complex": Z}),
    ("tanh", jnp.tanh, {"complex": Z, "complex_0": ZEROZ}),
    ("asin", jnp.asin, {"complex": Z}),
    ("acos", jnp.acos, {"complex": Z}),
    ("atan", jnp.atan, {"complex": Z}),
    ("asinh", jnp.asinh, {"complex": Z}),
    ("acosh", jnp.acosh, {"complex": Z}),
    ("atanh", jnp.atanh, {"complex": Z}),
    ("logistic", lax.logistic, {"complex": Z}),
    ("sqrt", jnp.sqrt, {"complex": Z}),
    ("rsqrt", lax.rsqrt, {"complex": Z}),
    ("square", jnp.square, {"complex": Z}),
    ("integer_pow", lambda z: z**3 + z**-2, {"complex": Z}),
    ("pow", lambda z: z**1.5, {"complex": Z}),
    ("pow_both", lax.pow, {"complex": (Z, W)}),
    ("mul", lax.mul, {"complex": (Z, W)}),
    ("div", lax.div, {"complex": (Z, W)}),
    ("reciprocal", jnp.reciprocal, {"complex": Z}),
    ("loggamma", with_standard_promotion(jsp.loggamma), {"complex": [0.4 + 0.3j, 2.6 - 0.7j]}),
    ("abs", jnp.abs, {"complex": Z}),
    ("abs_squared", lambda z: jnp.real(z * jnp.conj(z)), {"complex": Z, "complex_0": ZEROZ}),
    ("angle", jnp.angle, {"complex": Z}),
    # JAX takes sign to be constant, for complex numbers too.
    ("sign", lambda z: z * jnp.sign(z), {"complex": Z}),
    ("conj", lambda z: jnp.conj(jnp.exp(z)) * z, {"complex": Z}),
    ("sinc", jnp.sinc, {"complex": Z}),
    ("matmul", lambda z, w: jnp.vdot(z, w) * w, {"complex": (Z, W)}),
    ("prod", jnp.prod, {"complex": Z}),
    ("where", lambda z: jnp.where(jnp.real(z) > 0.0, jnp.exp(z), z * z), {"complex": Z}),
]


def z(x, y):
    return lax.complex(x, y)


PAIR = (REAL, OTHER)
REAL_TO_COMPLEX = [
    ("complex_square", lambda x, y: z(x, y) ** 2, {"real": PAIR}),
    ("real_of_exp", lambda x, y: jnp.real(jnp.exp(z(x, y))), {"real": PAIR}),
    ("imag_of_exp", lambda x, y: jnp.imag(jnp.exp(z(x, y))), {"real": PAIR}),
    ("conj_product", lambda x, y: jnp.real(z(x, y) * jnp.conj(z(y, x))), {"real": PAIR}),
    ("conj_of_real", lambda x: jnp.conj(x) * jnp.real(x) + jnp.imag(x), {"real": REAL}),
    ("quotient", lambda x, y: z(x, y) / z(y, x * x), {"real": PAIR}),
    ("modulus", lambda x, y: jnp.abs(jnp.sin(z(x, y))), {"real": PAIR}),
    ("argument", lambda x, y: jnp.angle(z(x, y) ** 2), {"real": PAIR}),
    ("polar", lambda r, t: jnp.exp(z(jnp.log(r), t)), {"real": (POSITIVE, REAL)}),
]

# Rows (name, fun, the same with mpmath, points, tolerance) of functions whose nested jvp takes too
# long to compile, or loses more digits than the tolerance allows.
EXACT = [
    (
        "ndtri",
        jsp.ndtri,
        normal_quantile,
        {"generic": FRACTION, "0.5": [0.5], "1e-3": [1e-3]},
        1e-9,
    ),
    ("log_ndtr", jsp.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)), {"-25": [-25.0]}, 1e-4),
    ("erfcx", jsp.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), {"20": [20.0]}, 1e-6),
    (
        "betaln",
        jsp.betaln,
        lambda a, b: mpmath.log(mpmath.beta(a, b)),
        {"generic": (POSITIVE, POSITIVE2)},
        1e-10,
    ),
    ("beta", jsp.beta, mpmath.beta, {"generic": (POSITIVE, POSITIVE2)}, 1e-10),
    ("poch", lambda x: jsp.poch(x, 1.5), lambda x: mpmath.rf(x, 1.5), {"generic": POSITIVE}, 1e-9),
    (
        "zeta",
        lambda q: jsp.zeta(2.5, q),
        lambda q: mpmath.zeta(2.5, q),
        {"generic": POSITIVE},
        1e-9,
    ),
    (
        "bessel_jn",
        lambda x: jsp.bessel_jn(x, v=1)[1],
        lambda x: mpmath.besselj(1, x),
        {"generic": [5.0, 8.0]},
        1e-9,
    ),
]

# Rows with the number of orders JAX has.
FIRST_ORDER = [
    ("exp1", jsp.exp1, {"generic": POSITIVE}),
    ("expn", lambda x: jsp.expn(3, x), {"generic": POSITIVE}),
    ("gammainc_order", lambda a: jsp.gammainc(a, 1.5), {"generic": POSITIVE}),
    ("gammaincc_order", lambda a: jsp.gammaincc(a, 1.5), {"generic": POSITIVE}),
    ("i1e", jsp.i1e, {"0": ZERO}),
]
FIRST_ORDER_WHY = {
    "exp1": "expn's derivative calls expn with a traced order, and that has no derivative",
    "expn": "expn's derivative calls expn with a traced order, and that has no derivative",
    "gammainc_order": "igamma_grad_a has no derivative",
    "gammaincc_order": "igamma_grad_a has no derivative",
    "i1e": "exp(-|x|) has a kink at 0, and nested jvp's values beyond are neither side's",
}


def spherical_harmonic(theta, phi):
    degree, order = jnp.array([2]), jnp.array([1])
    return jsp.sph_harm_y(degree, order, theta, phi, n_max=2)


def spherical_harmonic_closed(theta, phi):
    amplitude = -np.sqrt(15 / (8 * np.pi)) * jnp.sin(theta) * jnp.cos(theta)
    return lax.complex(amplitude * jnp.cos(phi), amplitude * jnp.sin(phi))


CASES = table(ERROR_FUNCTIONS + GAMMA_FUNCTIONS + OTHER_FUNCTIONS + ENTROPIES)
CASES += table(COMPLEX + REAL_TO_COMPLEX)
CASES += table(
    [("kl_div", jsp.kl_div, {"equal": ([0.7], [0.7])})],
    absolute=1e-14,
    why="the first derivative is a difference of equal numbers",
)
for name, fun, exact, points, tolerance in EXACT:
    CASES += table(
        [(name, fun, points)],
        tolerance=tolerance,
        reference=high_precision(exact),
        why="nested jvp is slow to compile or loses digits here",
    )
for row in FIRST_ORDER:
    CASES += table([row], orders=1, why=FIRST_ORDER_WHY[row[0]])
CASES += table(
    [("sph_harm_y", with_standard_promotion(spherical_harmonic), {"generic": ([0.7], [0.3])})],
    reference=rewritten(spherical_harmonic_closed),
    why="nested jvp is slow to compile",
)
