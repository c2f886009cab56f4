"""A state as a flat table of its leaves, and back again, bit for bit."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np


SCALARS = (bool, int, float, complex)
ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)

Table = dict[str, dict[str, Any]]


def pack(state: Any) -> tuple[Table, dict[str, np.ndarray]]:
    """What is known of each leaf, by its path, and the arrays that the table refers to.

    Python numbers go into the table. Leaves that are no data, such as functions, are left out.
    """
    table, arrays = {}, {}
    for path, leaf in jtu.tree_leaves_with_path(state):
        kind = describe(leaf)
        if kind is None:
            continue
        name = jtu.keystr(path)
        entry: dict[str, Any] = {"type": kind}
        if isinstance(leaf, ARRAYS):
            if _is_key(leaf):
                entry["key"] = str(jr.key_impl(leaf))
                leaf = jr.key_data(leaf)
            array = _host(name, leaf)
            # Nothing to store, and orbax refuses to.
            if array.size > 0:
                entry["array"] = str(len(arrays))
                arrays[entry["array"]] = array
        else:
            entry["value"] = [leaf.real, leaf.imag] if type(leaf) is complex else leaf
        if name in table:
            raise ValueError(f"Two leaves of the state have the same path, `{name}`.")
        table[name] = entry
    return table, arrays


def mismatches(template: Any, table: Table) -> list[str]:
    """In words, how the leaves of a template differ from those of a checkpoint."""
    expected = {jtu.keystr(path): describe(x) for path, x in jtu.tree_leaves_with_path(template)}
    expected = {name: kind for name, kind in expected.items() if kind is not None}
    found = {name: entry["type"] for name, entry in table.items()}
    return [
        f"leaf `{name or '(the whole state)'}`: expected {expected.get(name, 'no such leaf')}, "
        f"found {found.get(name, 'no such leaf')}"
        for name in dict.fromkeys([*expected, *found])
        if expected.get(name) != found.get(name)
    ]


def unpack(template: Any, table: Table, arrays: dict[str, np.ndarray]) -> Any:
    """The template with all data from a checkpoint; there must be no `mismatches`."""

    def fill(path, leaf):
        entry = table.get(jtu.keystr(path))
        if entry is None:
            return leaf
        if "value" in entry:
            return complex(*entry["value"]) if type(leaf) is complex else type(leaf)(entry["value"])
        if "array" in entry:
            return _like(leaf, arrays[entry["array"]], entry)
        return jnp.empty(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf

    return jtu.tree_map_with_path(fill, template)


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Whether two sets of arrays agree in every bit."""
    return first.keys() == second.keys() and all(
        a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(_bytes(a), _bytes(b)))
        for a, b in ((first[name], second[name]) for name in first)
    )


def describe(leaf: Any) -> str | None:
    """The type of a leaf in words, such as `float32[2,3]`; `None` if it is no data."""
    if type(leaf) in SCALARS:
        return f"Python {type(leaf).__name__}"
    if isinstance(leaf, ARRAYS):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return None


def _is_key(leaf: Any) -> bool:
    return jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _host(name: str, leaf: Any) -> np.ndarray:
    """A leaf in the memory of the host."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise TypeError(f"Leaf `{name}` of the state has a shape but no values.")
    array = np.asarray(leaf)
    number = jnp.issubdtype(array.dtype, np.number) or array.dtype == np.bool_
    # Extended precision has no portable layout.
    if not number or not array.dtype.isnative or array.dtype.char in "gG":
        raise TypeError(
            f"Leaf `{name}` of the state has dtype `{array.dtype}`, which has no storage."
        )
    return array


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _like(leaf: Any, array: np.ndarray, entry: dict[str, Any]) -> Any:
    """An array in the form of a leaf of the template."""
    if isinstance(leaf, np.generic):
        return array[()]
    if isinstance(leaf, np.ndarray):
        return np.array(array)
    # A copy: what shares memory with NumPy cannot be donated.
    result = jnp.array(array)
    if "key" in entry:
        result = jr.wrap_key_data(result, impl=entry["key"])
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return result if leaf.sharding is None else jax.device_put(result, leaf.sharding)
    if leaf.weak_type:
        # Promotion would go another way otherwise; an update keeps the type of what is updated.
        result = leaf.at[...].set(result)
    return jax.device_put(result, leaf.sharding) if leaf.committed else result
