"""Reductions, sorting, and reading and writing at indices; ties follow JAX's convention."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp

from .tensors import fixed, table


NAN = np.nan
MATRIX = fixed(3, 4)
TIED = np.array([2.0, 1.0, 2.0, -1.0, 2.0, -1.0])
WITH_NAN = np.array([[0.4, NAN, -1.2], [1.7, 0.3, NAN]])


def over_axes(fun):
    """Over everything, over one axis, and over one axis that is kept."""
    return lambda x: (fun(x), fun(x, axis=0), fun(x, axis=1, keepdims=True))


REDUCTIONS = [
    ("sum", over_axes(lambda x, **options: jnp.sum(x**2, **options)), [MATRIX]),
    ("sum_where", lambda x: jnp.sum(x**2, where=MATRIX > 0), [MATRIX]),
    ("sum_empty", lambda x: jnp.sum(x[2:2] ** 2) + x, [(2,)]),
    ("mean", over_axes(lambda x, **options: jnp.mean(x**2, **options)), [MATRIX]),
    ("average_weighted", lambda x, w: jnp.average(x, weights=jnp.exp(w)), [(4,), (4,)]),
    ("var", over_axes(jnp.var), [MATRIX]),
    ("var_unbiased", partial(jnp.var, ddof=1), [(5,)]),
    ("std", over_axes(jnp.std), [MATRIX]),
    ("cov", jnp.cov, [(2, 4)]),
    ("corrcoef", jnp.corrcoef, [(2, 4)]),
    ("ptp", jnp.ptp, [(5,)]),
    ("max", over_axes(jnp.max), [MATRIX]),
    ("min", over_axes(jnp.min), [MATRIX]),
    ("max_initial", partial(jnp.max, initial=0.5), [np.array([-1.0, 0.2, 1.4])]),
    ("max_where", lambda x: jnp.max(x, where=MATRIX < 0, initial=-9.0), [MATRIX]),
    ("max_tied", jnp.max, [TIED]),
    ("min_tied", jnp.min, [TIED]),
    ("max_tied_axis", partial(jnp.max, axis=1), [np.array([[1.0, 1.0], [0.0, 2.0], [3.0, 3.0]])]),
    ("max_all_equal", lambda x: jnp.max(jnp.sin(x)), [np.zeros(4)]),
    ("max_tied_after_square", lambda x: jnp.max(x**2), [np.array([-1.5, 1.5, 0.5])]),
    ("prod", over_axes(jnp.prod), [MATRIX]),
    ("prod_one_zero", jnp.prod, [np.array([1.2, 0.0, -0.7, 2.0])]),
    ("prod_two_zeros", jnp.prod, [np.array([1.2, 0.0, -0.7, 0.0])]),
    ("prod_zero_in_columns", partial(jnp.prod, axis=0), [np.array([[1.2, 0.0], [0.0, 0.0]])]),
    ("prod_single", partial(jnp.prod, axis=1), [(3, 1)]),
    ("logsumexp", over_axes(logsumexp), [MATRIX]),
    ("logsumexp_weighted", lambda x, b: logsumexp(x, b=jnp.exp(b)), [(4,), (4,)]),
    ("logsumexp_large", logsumexp, [np.array([800.0, 799.0, -800.0])]),
    ("logsumexp_tied", logsumexp, [np.array([1.0, 1.0, 0.0])]),
    ("logsumexp_minus_infinity", lambda x: logsumexp(jnp.append(x, -np.inf)), [(3,)]),
    ("argmax", lambda x: x * jnp.argmax(x).astype(x.dtype), [(4,)]),
    ("argmax_one_hot", lambda x: x @ jax.nn.one_hot(jnp.argmax(x), 4, dtype=x.dtype), [(4,)]),
    ("argmin_as_index", lambda x: x[jnp.argmin(x)] ** 2, [(4,)]),
    ("norm", lambda x: jnp.linalg.norm(x), [(4,)]),
    ("norm_along_axis", lambda x: jnp.linalg.norm(x, axis=1), [MATRIX]),
    ("median_odd", jnp.median, [(5,)]),
    ("median_even", jnp.median, [(4,)]),
    ("median_axis", partial(jnp.median, axis=0), [MATRIX]),
    ("quantile", lambda x: jnp.quantile(x, np.array([0.1, 0.5, 0.8])), [(5,)]),
    ("quantile_varying", lambda x, q: jnp.quantile(x, jax.nn.sigmoid(q)), [(5,), (2,)]),
    ("quantile_lower", lambda x: jnp.quantile(x, 0.3, method="lower"), [(5,)]),
    ("percentile", lambda x: jnp.percentile(x, 35.0), [(5,)]),
    ("any_converted", lambda x: x * jnp.any(x > 1).astype(x.dtype), [np.array([0.5, 1.5])]),
    ("all_converted", lambda x: x * jnp.all(x > 0).astype(x.dtype), [np.array([0.5, 1.5])]),
    ("count_nonzero", lambda x: x / jnp.count_nonzero(x > 0).astype(x.dtype), [TIED]),
    ("outputs_of_all_types", lambda x: (x**2, x > 0, jnp.argsort(x)), [(3,)]),
    ("nansum", over_axes(jnp.nansum), [WITH_NAN]),
    ("nanmean", over_axes(jnp.nanmean), [WITH_NAN]),
    ("nanvar", over_axes(jnp.nanvar), [np.array([[0.4, NAN, -1.2], [1.7, 0.3, 0.9]])]),
    ("nanstd", jnp.nanstd, [WITH_NAN]),
    ("nanmax", over_axes(jnp.nanmax), [WITH_NAN]),
    ("nanmin", over_axes(jnp.nanmin), [WITH_NAN]),
    ("nanprod", over_axes(jnp.nanprod), [WITH_NAN]),
    ("nanmedian", jnp.nanmedian, [WITH_NAN]),
    ("softmax", lambda x: jax.nn.softmax(x, axis=1), [MATRIX]),
    ("log_softmax", lambda x: jax.nn.log_softmax(x, axis=0), [MATRIX]),
    ("standardize", lambda x: jax.nn.standardize(x, axis=1), [MATRIX]),
]


def sort_together(x, y):
    return lax.sort((x, y * x, jnp.arange(5)), num_keys=1)


def sort_by_two_keys(x, y):
    return lax.sort((jnp.round(x), x * y, y), num_keys=2)


def top(k):
    return lambda x: lax.top_k(x, k)


SORTING = [
    ("sort", over_axes(lambda x, axis=None, keepdims=False: jnp.sort(x, axis=axis)), [MATRIX]),
    ("sort_descending", lambda x: jnp.sort(x**2, descending=True), [(5,)]),
    ("sort_tied", jnp.sort, [TIED]),
    ("sort_unstable_flag", partial(jnp.sort, stable=False), [(5,)]),
    ("sort_signed_zeros", jnp.sort, [np.array([0.0, -0.0, 1.0, -1.0])]),
    ("sort_several_operands", sort_together, [(5,), (5,)]),
    ("sort_several_operands_tied", sort_together, [TIED[:5], (5,)]),
    ("sort_two_keys", sort_by_two_keys, [np.array([1.2, 0.7, 2.9, 1.4, 2.3]), (5,)]),
    ("sort_batched_operands", lambda x, y: lax.sort((x, y), dimension=0), [(3, 2), (3, 2)]),
    ("sort_key_val", lambda y: lax.sort_key_val(jnp.asarray(fixed(5)), y**2), [(5,)]),
    ("argsort_through_take", lambda x: jnp.take(x**2, jnp.argsort(x)), [(5,)]),
    ("argsort_along_axis", lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), [MATRIX]),
    ("lexsort", lambda x, y: (x * y)[jnp.lexsort((x, y))], [(4,), (4,)]),
    ("top_k", top(2), [(5,)]),
    ("top_k_tied", top(4), [TIED]),
    ("top_k_batched", top(2), [MATRIX]),
    ("top_k_indices", lambda x: (x**2)[lax.top_k(-x, 3)[1]], [(5,)]),
    ("partition", lambda x: jnp.sort(jnp.partition(x, 2)[:2]), [(5,)]),
    ("searchsorted", lambda x, y: (x**2)[jnp.searchsorted(jnp.sort(x), y)], [(4,), np.zeros(2)]),
    ("digitize", lambda x: x * jnp.take(fixed(4), jnp.digitize(x, np.arange(-1.0, 2.0))), [(4,)]),
    ("sort_of_ranks", lambda x: jnp.argsort(jnp.argsort(x)).astype(x.dtype) * x, [(4,)]),
]

ROWS = np.array([2, 0, 2])
COLUMNS = np.array([1, 3, 0])
BEYOND = np.array([1, 7, -2, -9])


def take(mode, **options):
    return lambda x: jnp.take(x**2, BEYOND, axis=0, mode=mode, **options)


GATHERS = [
    ("integer", lambda x: x[1] * x[-1], [(4,)]),
    ("slice", lambda x: x[1:3] ** 2, [(5,)]),
    ("slice_negative_step", lambda x: x[::-2] ** 2, [(5,)]),
    ("row", lambda x: x[1] ** 2, [MATRIX]),
    ("newaxis_ellipsis", lambda x: x[..., None, 1] ** 2, [MATRIX]),
    ("array", lambda x: (x**2)[ROWS], [MATRIX]),
    ("two_arrays", lambda x: (x**2)[ROWS, COLUMNS], [MATRIX]),
    ("array_and_slice", lambda x: (x**2)[1:, COLUMNS], [MATRIX]),
    ("open_mesh", lambda x: (x**2)[np.ix_(ROWS, COLUMNS)], [MATRIX]),
    ("static_mask", lambda x: (x**2)[MATRIX > 0], [MATRIX]),
    ("integer_argument", lambda x, i: (x**2)[i], [(4,), np.array([3, 0, 3])]),
    ("beyond_default", lambda x: (x**2)[BEYOND], [(4,)]),
    ("get_promise_in_bounds", lambda x: (x**2).at[ROWS].get(mode="promise_in_bounds"), [(4,)]),
    (
        "get_unique_sorted",
        lambda x: (x**2).at[np.array([0, 2])].get(indices_are_sorted=True, unique_indices=True),
        [(4,)],
    ),
    ("take_fill", take("fill", fill_value=0.5), [(4,)]),
    ("take_clip", take("clip"), [(4,)]),
    ("take_wrap", take("wrap"), [(4, 2)]),
    (
        "take_fill_nan",
        take("fill"),
        [(4,)],
        {"finite": False, "why": "out-of-bounds entries are NaN by definition of the mode"},
    ),
    ("take_axis", lambda x: jnp.take(x**2, COLUMNS, axis=1), [MATRIX]),
    ("take_along_axis", lambda x: jnp.take_along_axis(x**2, ROWS[None] % 2, axis=0), [(2, 3)]),
    ("dynamic_slice", lambda x, i: lax.dynamic_slice(x**2, (i,), (2,)), [(5,), np.array(2)]),
    ("dynamic_slice_clamped", lambda x: lax.dynamic_slice(x**2, (9, 1), (2, 2)), [MATRIX]),
    ("dynamic_index", lambda x, i: lax.dynamic_index_in_dim(x**2, i, 1), [MATRIX, np.array(2)]),
    ("index_from_values", lambda x: (x**2)[jnp.floor(jnp.abs(x)).astype(np.int32)], [(4,)]),
    ("vmapped", lambda x: jax.vmap(lambda row, i: (row**2)[i])(x, ROWS), [MATRIX]),
    (
        "vmapped_dynamic_slice",
        lambda x: jax.vmap(lambda row, i: lax.dynamic_slice(row**2, (i,), (2,)))(x, ROWS),
        [MATRIX],
    ),
    ("diagonal", lambda x: jnp.diagonal(x**2, 1), [MATRIX]),
    ("embedding_product", lambda x: x[np.array([[0, 1], [1, 1]])].prod(axis=1), [(2, 3)]),
]

UNIQUE = np.array([3, 0])
REPEATED = np.array([1, 3, 1])


def scatter(method, indices, **options):
    return lambda x, y: getattr(x.at[indices], method)(y, **options)


def update_slice(x, y, i):
    return lax.dynamic_update_slice(x**2, jnp.sin(y), (i,))


def scatter_distinct(x):
    return x.at[np.array([0, 3])].set(x[np.array([3, 0])] ** 2)


def update_index(x, y, i):
    return lax.dynamic_update_index_in_dim(x, y**2, i, 0)


SCATTERS = [
    ("set", scatter("set", UNIQUE), [(4,), (2,)]),
    ("set_repeated", scatter("set", REPEATED), [(4,), (3,)]),
    ("set_constant", lambda x: (x**2).at[UNIQUE].set(1.0), [(4,)]),
    ("set_into_constant", lambda y: jnp.asarray(fixed(4)).at[UNIQUE].set(y**2), [(2,)]),
    ("set_slice", lambda x, y: (x**2).at[1:3].set(y), [(4,), (2,)]),
    ("set_scalar", lambda x, y: (x**2).at[2].set(y), [(4,), ()]),
    ("set_mask", lambda x: jnp.where(MATRIX > 0, x**2, x), [MATRIX]),
    ("set_from_itself", scatter_distinct, [(4,)]),
    ("set_out_of_bounds", scatter("set", np.array([1, 8]), mode="drop"), [(4,), (2,)]),
    ("set_unique_flag", scatter("set", UNIQUE, unique_indices=True), [(4,), (2,)]),
    ("add", scatter("add", UNIQUE), [(4,), (2,)]),
    ("add_repeated", scatter("add", REPEATED), [(4,), (3,)]),
    ("add_clip", scatter("add", np.array([1, 8]), mode="clip"), [(4,), (2,)]),
    ("add_rows", scatter("add", ROWS), [MATRIX, (3, 4)]),
    ("add_two_arrays", scatter("add", (ROWS, COLUMNS)), [MATRIX, (3,)]),
    ("subtract", scatter("subtract", REPEATED), [(4,), (3,)]),
    ("multiply", scatter("multiply", UNIQUE, unique_indices=True), [(4,), (2,)]),
    ("multiply_constant", lambda x: (x**2).at[REPEATED].multiply(fixed(3)), [(4,)]),
    ("divide", scatter("divide", UNIQUE, unique_indices=True), [(4,), np.array([1.5, -2.0])]),
    ("power", lambda x: x.at[UNIQUE].power(3), [np.array([0.5, 1.5, 2.0, 0.7])]),
    ("dynamic_update_slice", update_slice, [(5,), (2,), np.array(1)]),
    ("dynamic_update_slice_clamped", update_slice, [(5,), (2,), np.array(7)]),
    ("dynamic_update_slice_of_operand", lambda x: update_slice(x, fixed(2), 1), [(5,)]),
    ("dynamic_update_slice_of_update", lambda y: update_slice(fixed(5), y, 1), [(2,)]),
    ("dynamic_update_index", update_index, [(3, 2), (2,), np.array(1)]),
    (
        "vmapped_add",
        lambda x, y: jax.vmap(lambda a, b, i: a.at[i].add(b))(x, y, ROWS),
        [MATRIX, (3,)],
    ),
    ("segment_sum", lambda x: jax.ops.segment_sum(x**2, REPEATED, 4), [(3, 2)]),
    ("segment_max", lambda x: jax.ops.segment_max(x, np.array([0, 0, 1, 1]), 2), [(4,)]),
    ("segment_min", lambda x: jax.ops.segment_min(x, np.array([0, 0, 1, 1]), 2), [(4,)]),
    ("segment_prod", lambda x: jax.ops.segment_prod(x, UNIQUE, 4, unique_indices=True), [(2,)]),
    ("at_max", scatter("max", UNIQUE), [(4,), (2,)]),
    ("at_min", scatter("min", UNIQUE), [(4,), (2,)]),
    ("bincount_weights", lambda w: jnp.bincount(REPEATED, weights=w**2, length=4), [(3,)]),
    ("fill_diagonal", lambda x: jnp.fill_diagonal(x**2, 1.0, inplace=False), [(3, 3)]),
    ("histogram_weights", lambda w: jnp.histogram(fixed(4), 3, weights=w**2)[0], [(4,)]),
]


def first_where(x):
    (indices,) = jnp.where(x > 0, size=4, fill_value=0)
    return (x**2)[indices]


def flags(x):
    good = lax.reduce_and(x < 9, (0,)) & lax.reduce_or(x > -9, (0,))
    return jnp.where(good, jnp.sin(x), x) * lax.reduce_xor(jnp.arange(3), (0,)).astype(x.dtype)


def integers(x):
    n = jnp.floor(x).astype(np.int64)
    bits = (lax.population_count(n) << 1) | jnp.bitwise_xor(n, 3) % 5
    return x**2 * bits.astype(x.dtype) + jnp.cumsum(n * n).astype(x.dtype)


CHOICES = [
    ("where", lambda x, y: jnp.where(x > y, x**2, jnp.sin(y)), [(4,), (4,)]),
    ("where_constant_branch", lambda x: jnp.where(x > 0, jnp.exp(x), 0.0), [(4,)]),
    ("where_safe_log", lambda x: jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), 0.0), [(4,)]),
    ("where_broadcast", lambda x, y: jnp.where(MATRIX > 0, x[:, None], y), [(3,), (4,)]),
    ("where_indices", first_where, [(4,)]),
    ("select", lambda x: jnp.select([x > 1, x > 0], [x**3, jnp.sin(x)], -x), [(6,)]),
    ("select_n", lambda i, x, y: lax.select_n(i, x, y, x * y), [np.array([2, 0, 1]), (3,), (3,)]),
    ("select_scalar_predicate", lambda x, y: lax.select(x[0] < 9, x**2, y), [(3,), (3,)]),
    ("piecewise", lambda x: jnp.piecewise(x, [x < 0, x > 1], [jnp.sin, jnp.exp, 2.0]), [(5,)]),
    ("choose", lambda x, y: jnp.choose(np.array([1, 0, 1]), [x**2, y], mode="clip"), [(3,), (3,)]),
    ("compress", lambda x: jnp.compress(x > 0, x**2, size=3), [(3,)]),
    ("extract", lambda x: jnp.extract(x > 0, x**2, size=3), [(3,)]),
    ("unique_sized", lambda x: jnp.unique(x, size=5), [TIED]),
    ("nonzero_sized", lambda x: (x**2)[jnp.nonzero(x > 0, size=3)], [TIED]),
    ("boolean_reductions", flags, [np.array([0.5, 1.2, -0.7])]),
    ("integer_arithmetic", integers, [np.array([0.5, 2.3, 5.7])]),
    ("clip", lambda x: jnp.clip(x, -0.5, 0.5), [np.array([-2.0, 0.1, 0.4, 3.0])]),
    ("clip_varying_bounds", jnp.clip, [(4,), np.array(-0.5), np.array(0.6)]),
    ("clamp_at_bound", lambda x: lax.clamp(-1.0, x, 1.0), [np.array([-1.0, 1.0, 0.0])]),
    ("maximum_tied", jnp.maximum, [TIED, TIED[::-1]]),
    ("minimum_tied", jnp.minimum, [TIED, TIED[::-1]]),
]

CASES = [
    *table("reduction", REDUCTIONS),
    *table("sorting", SORTING),
    *table("gather", GATHERS),
    *table("scatter", SCATTERS),
    *table("choice", CHOICES),
]
