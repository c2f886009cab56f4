"""Solvers, factorizations and matrix functions.

The factors that are unique only up to signs are combined into something that is unique. Where
nested `jvp` takes very long to compile, the reference is an elementary formula.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax
from jax.scipy.sparse.linalg import bicgstab, cg, gmres

from .tensors import complex_fixed, fixed, like, table


GENERAL = 2 * np.eye(3) + 0.5 * fixed(3, 3)
FLIPPED = GENERAL[::-1].copy()
BATCH = 2 * np.eye(2) + 0.4 * fixed(2, 2, 2)
COMPLEX = 2 * np.eye(2) + 0.5 * complex_fixed(2, 2)
TALL = np.eye(4, 3) + 0.4 * fixed(4, 3)
SEPARATED = np.diag([1.0, 2.5, 4.5])
REAL_SPECTRUM = SEPARATED + 0.3 * fixed(3, 3)
FOUR = np.eye(4) + 0.2
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, 1.0, -1.0]])
LEVI_CIVITA = np.cross(np.eye(3)[:, None], np.eye(3)[None])
DIAGONALS = np.stack([0.3 * fixed(4), 2 + 0.3 * fixed(4, seed=1), 0.3 * fixed(4, seed=2)])


def spd(x):
    return x @ jnp.swapaxes(x, -1, -2) + 2 * np.eye(x.shape[-1])


def of_spd(fun):
    return lambda x, *rest: fun(spd(x), *rest)


def of_symmetric(fun):
    """At a symmetric matrix of well-separated eigenvalues."""
    return lambda x: fun(SEPARATED + 0.3 * (x + x.T))


def inverse(a):
    """Of a 3 x 3 matrix, by cofactors."""
    cofactors = jnp.einsum("ijk,lmn,jm,kn->il", LEVI_CIVITA, LEVI_CIVITA, a, a) / 2
    return cofactors.T / jnp.vdot(a[0], cofactors[0])


def normal_equations(a, b):
    return inverse(a.T @ a) @ (a.T @ b)


def power_series(coefficients, a):
    """By Horner's rule, in a loop to compile quickly."""

    def step(value, coefficient):
        return a @ value + coefficient * jnp.eye(len(a)), None

    return lax.scan(step, jnp.zeros_like(a), np.array(coefficients[::-1]))[0]


EXPONENTIAL = [1 / math.factorial(k) for k in range(60)]
SINE = [(k % 2) * (-1) ** (k // 2) / math.factorial(k) for k in range(40)]
exponential = partial(power_series, EXPONENTIAL)


def sine_of_singular_values(a):
    return a @ power_series(SINE[1::2], a.T @ a)


def polar_by_iteration(a):
    u = lax.scan(lambda u, _: ((u + inverse(u).T) / 2, None), a, None, 15)[0]
    p = u.T @ a
    return u, (p + p.T) / 2


def instead(fun):
    return {"reference": like(fun), "why": "nested jvp of the function itself compiles too slowly"}


by_inverse = instead(lambda a, b: inverse(a) @ b)
by_inverse_transposed = instead(lambda a, b: b @ inverse(a))
by_inverse_spd = instead(of_spd(lambda a, b: inverse(a) @ b))


def by_cholesky(a, b):
    return jsl.cho_solve((jnp.linalg.cholesky(a), True), b)


def by_lu(a, b, trans=0):
    return jsl.lu_solve(jsl.lu_factor(a), b, trans=trans)


SOLVERS = [
    ("solve_vector", jnp.linalg.solve, [GENERAL, (3,)]),
    ("solve_matrix", jnp.linalg.solve, [GENERAL, (3, 2)]),
    ("solve_of_matrix", lambda a: jnp.linalg.solve(a, fixed(3)), [GENERAL]),
    ("solve_of_right_hand_side", lambda b: jnp.linalg.solve(GENERAL, b**2), [(3,)]),
    ("solve_batched", jnp.linalg.solve, [BATCH, (2, 2, 1)]),
    ("solve_complex", jnp.linalg.solve, [COMPLEX, complex_fixed(2)]),
    ("solve_vmapped", jax.vmap(jnp.linalg.solve, (None, 0)), [COMPLEX.real, (2, 2)]),
    ("solve_spd", of_spd(partial(jsl.solve, assume_a="pos")), [(3, 3), (3,)], by_inverse_spd),
    ("inv", jnp.linalg.inv, [GENERAL]),
    ("inv_batched", jnp.linalg.inv, [BATCH]),
    ("tensorinv", lambda a: jnp.linalg.tensorinv(a.reshape(2, 2, 4), 2), [FOUR]),
    ("tensorsolve", lambda a, b: jnp.linalg.tensorsolve(a.reshape(4, 2, 2), b), [FOUR, (4,)]),
    ("pinv_tall", jnp.linalg.pinv, [TALL]),
    ("pinv_wide", jnp.linalg.pinv, [TALL.T]),
    ("lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], [TALL, (4,)], instead(normal_equations)),
    ("cho_solve", of_spd(by_cholesky), [(3, 3), (3, 2)], by_inverse_spd),
    ("lu_solve", by_lu, [GENERAL, (3,)], by_inverse),
    ("lu_solve_transposed", partial(by_lu, trans=1), [FLIPPED, (3,)], by_inverse_transposed),
]


def triangular(**options):
    return lambda a, b: jsl.solve_triangular(a, b, **options)


def side(left, **options):
    return lambda a, b: lax.linalg.triangular_solve(a, b, left_side=left, **options)


def tridiagonal(x, b):
    return lax.linalg.tridiagonal_solve(x[0].at[0].set(0.0), x[1], x[2].at[-1].set(0.0), b)


TRIANGULAR = [
    ("upper", triangular(), [GENERAL, (3,)]),
    ("lower", triangular(lower=True), [GENERAL, (3, 2)]),
    ("upper_transposed", triangular(trans="T"), [GENERAL, (3,)]),
    ("lower_transposed", triangular(lower=True, trans=1), [GENERAL, (3,)]),
    ("unit_diagonal", triangular(lower=True, unit_diagonal=True), [GENERAL, (3,)]),
    ("conjugate_transposed", triangular(trans="C"), [COMPLEX, complex_fixed(2)]),
    ("of_matrix", lambda a: triangular()(a, fixed(3)), [GENERAL]),
    ("of_right_hand_side", lambda b: triangular()(GENERAL, b**2), [(3,)]),
    ("right_lower", side(False, lower=True), [GENERAL, (2, 3)]),
    ("right_upper", side(False), [GENERAL, (2, 3)]),
    ("right_transposed", side(False, lower=True, transpose_a=True), [GENERAL, (2, 3)]),
    ("right_unit", side(False, lower=True, unit_diagonal=True), [GENERAL, (2, 3)]),
    (
        "left_conjugate",
        side(True, transpose_a=True, conjugate_a=True),
        [COMPLEX, complex_fixed(2, 1)],
    ),
    ("batched", side(True, lower=True), [BATCH, (2, 2, 1)]),
    ("tridiagonal", tridiagonal, [DIAGONALS, (4, 1)]),
    ("tridiagonal_of_right", lambda b: tridiagonal(jnp.asarray(DIAGONALS), b**2), [(4, 2)]),
]


def exponential_by_eigh(a):
    values, vectors = jnp.linalg.eigh(a)
    return (vectors * jnp.exp(values).astype(vectors.dtype)) @ vectors.conj().T


def hermitian(a):
    return exponential_by_eigh(np.diag([1.0 + 0j, 3.0]) + 0.3 * (a + a.conj().T))


def by_svd(fun, rank=3):
    def apply(a):
        u, s, vt = jnp.linalg.svd(a, full_matrices=False)
        return (u[:, :rank] * fun(s[:rank])) @ vt[:rank]

    return apply


def lu_product(a):
    permutation, lower, upper = jsl.lu(a)
    return permutation @ jnp.sin(lower) @ upper


def sine_by_eig(a):
    """The normalization of the eigenvectors cancels."""
    values, vectors = lax.linalg.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return ((vectors * jnp.sin(values)) @ jnp.linalg.inv(vectors)).real


first = {"orders": 1, "why": "JAX forbids the derivatives of eigenvectors that the second needs"}
sine = instead(sine_of_singular_values)

FACTORIZATIONS = [
    ("cholesky", of_spd(jnp.linalg.cholesky), [(3, 3)]),
    ("cholesky_batched", of_spd(jnp.linalg.cholesky), [(2, 2, 2)]),
    ("cholesky_complex", lambda a: jnp.linalg.cholesky(a @ a.conj().T), [COMPLEX]),
    ("logdet", of_spd(lambda a: jnp.log(jnp.diag(jnp.linalg.cholesky(a))).sum()), [(3, 3)]),
    ("qr", jnp.linalg.qr, [GENERAL]),
    ("qr_tall", jnp.linalg.qr, [TALL]),
    ("qr_triangle_only", partial(jnp.linalg.qr, mode="r"), [TALL]),
    ("qr_batched", jnp.linalg.qr, [BATCH]),
    ("lu", jsl.lu, [GENERAL]),
    ("lu_pivoted", lu_product, [FLIPPED]),
    ("lu_factor", lambda a: jsl.lu_factor(a)[0], [FLIPPED]),
    ("lu_batched", lambda a: lax.linalg.lu(a)[0], [BATCH]),
    ("lu_tall", lambda a: lax.linalg.lu(a)[0], [TALL]),
    ("svd_values", partial(jnp.linalg.svd, compute_uv=False), [REAL_SPECTRUM]),
    ("svd_low_rank", by_svd(lambda s: s, rank=2), [REAL_SPECTRUM]),
    ("svd_function", by_svd(jnp.sin), [TALL], sine),
    ("svd_function_wide", by_svd(jnp.sin), [TALL.T], sine),
    ("eigh_values", of_symmetric(lambda a: jnp.linalg.eigh(a)[0]), [(3, 3)]),
    ("eigh_squared_vectors", of_symmetric(lambda a: jnp.linalg.eigh(a)[1] ** 2), [(3, 3)]),
    ("eigh_exp", of_symmetric(exponential_by_eigh), [(3, 3)], instead(of_symmetric(exponential))),
    ("eigh_hermitian", hermitian, [complex_fixed(2, 2)]),
    ("eigvalsh", of_symmetric(jnp.linalg.eigvalsh), [(3, 3)]),
    ("eigvalsh_upper", partial(jnp.linalg.eigvalsh, UPLO="U"), [REAL_SPECTRUM]),
    ("eigvals", jnp.linalg.eigvals, [REAL_SPECTRUM], first),
    ("eig_function", sine_by_eig, [REAL_SPECTRUM], instead(partial(power_series, SINE))),
    ("polar", jsl.polar, [GENERAL], instead(polar_by_iteration)),
]


frechet = instead(lambda a, e: jax.jvp(exponential, (a,), (e,))[1])
derivative = partial(jsl.expm_frechet, compute_expm=False)

FUNCTIONS = [
    ("det_2x2", jnp.linalg.det, [BATCH]),
    ("det_3x3", jnp.linalg.det, [GENERAL]),
    ("det_4x4", jnp.linalg.det, [FOUR]),
    ("det_singular", jnp.linalg.det, [SINGULAR]),
    ("slogdet", jnp.linalg.slogdet, [FLIPPED]),
    ("svdvals", jnp.linalg.svdvals, [FLIPPED]),
    ("matrix_transpose", lambda a: jnp.linalg.matrix_transpose(a) @ a, [(3, 3)]),
    ("matrix_rank", lambda a: a * jnp.linalg.matrix_rank(a).astype(a.dtype), [FLIPPED]),
    ("slogdet_qr", partial(jnp.linalg.slogdet, method="qr"), [GENERAL]),
    ("slogdet_complex", jnp.linalg.slogdet, [COMPLEX]),
    ("power", lambda a: jnp.linalg.matrix_power(a, 5), [GENERAL]),
    ("power_negative", lambda a: jnp.linalg.matrix_power(a, -2), [GENERAL]),
    ("matrix_norm_fro", jnp.linalg.matrix_norm, [GENERAL]),
    ("matrix_norm_nuc", partial(jnp.linalg.matrix_norm, ord="nuc"), [REAL_SPECTRUM]),
    ("matrix_norm_2", partial(jnp.linalg.matrix_norm, ord=2), [REAL_SPECTRUM]),
    ("cond", jnp.linalg.cond, [REAL_SPECTRUM]),
    ("cond_1", partial(jnp.linalg.cond, p=1), [GENERAL]),
    ("norm_1", partial(jnp.linalg.norm, ord=1), [(4,)]),
    ("norm_2", partial(jnp.linalg.norm, ord=2), [(4,)]),
    ("norm_3", partial(jnp.linalg.norm, ord=3), [(4,)]),
    ("norm_inf", partial(jnp.linalg.norm, ord=np.inf), [(4,)]),
    ("norm_matrix_1", partial(jnp.linalg.norm, ord=1), [GENERAL]),
    ("norm_complex", jnp.linalg.norm, [complex_fixed(3)]),
    ("vector_norm", partial(jnp.linalg.vector_norm, axis=0), [TALL]),
    ("vecdot", jnp.linalg.vecdot, [(2, 3), (2, 3)]),
    ("linalg_cross", jnp.linalg.cross, [(3,), (3,)]),
    ("multi_dot", lambda *a: jnp.linalg.multi_dot(a), [(2, 3), (3, 2), (2, 3), (3,)]),
    ("expm", jsl.expm, [0.5 * fixed(3, 3)], instead(exponential)),
    ("expm_large_norm", jsl.expm, [3 * fixed(2, 2)], instead(exponential) | {"tolerance": 1e-9}),
    ("expm_frechet", derivative, [0.3 * fixed(2, 2), (2, 2)], frechet),
    ("block_diag", jsl.block_diag, [(2, 2), (1, 3)]),
    ("toeplitz", jsl.toeplitz, [(3,), (4,)]),
]


def custom_solve(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, lambda _, b: jnp.linalg.solve(a, b))


def richardson(matvec, b):
    return lax.fori_loop(0, 80, lambda _, x: x + 0.3 * (b - matvec(x)), jnp.zeros_like(b))


def custom_solve_symmetric(a, b):
    return lax.custom_linear_solve(lambda x: spd(a) @ x, b, richardson, symmetric=True)


def newton(f, x):
    def step(_, x):
        return x - f(x) / jax.jvp(f, (x,), (jnp.ones_like(x),))[1]

    return lax.fori_loop(0, 12, step, x)


def root(c):
    """Of x + x^3 = c, elementwise."""
    solve = (newton, lambda g, y: y / g(jnp.ones_like(y)))
    return lax.custom_root(lambda x: x + x**3 - c, jnp.zeros_like(c), *solve)


def krylov(solver, **options):
    return lambda a, b: solver(a, b, tol=1e-14, atol=1e-14, **options)[0]


SMALL = 0.4 * fixed(3, 3)

IMPLICIT = [
    ("custom_linear_solve", custom_solve, [GENERAL, (3,)]),
    ("custom_linear_solve_symmetric", custom_solve_symmetric, [SMALL, (3,)]),
    ("custom_root", root, [(3,)]),
    ("cg", of_spd(krylov(cg)), [SMALL, (3,)]),
    ("bicgstab", krylov(bicgstab), [GENERAL, (3,)]),
    ("gmres", krylov(gmres, solve_method="incremental"), [GENERAL, (3,)], by_inverse),
]

CASES = [
    *table("solve", SOLVERS),
    *table("triangular", TRIANGULAR),
    *table("factorization", FACTORIZATIONS),
    *table("matrix", FUNCTIONS),
    *table("implicit", IMPLICIT),
]
