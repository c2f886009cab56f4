"""A state as bytes and a table that tells what they mean; and back again, bit for bit."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np


SCALARS = (bool, int, float, complex)
ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)

Table = dict[str, dict[str, Any]]


def pack(state: Any) -> tuple[Table, np.ndarray]:
    """What is known of each leaf, by its path, and the bytes of all arrays.

    Python numbers go into the table. Leaves that are no data, such as functions, are left out.
    """
    table: Table = {}
    parts, offset = [], 0
    for path, leaf in jtu.tree_leaves_with_path(state):
        kind = _describe(leaf)
        if kind is None:
            continue
        name = jtu.keystr(path)
        if name in table:
            raise ValueError(f"Two leaves of the state have the same path, `{name}`.")
        entry = table[name] = {"type": kind}
        if type(leaf) in SCALARS:
            entry["value"] = [leaf.real, leaf.imag] if type(leaf) is complex else leaf
            continue
        if isinstance(leaf, jax.ShapeDtypeStruct):
            raise TypeError(f"Leaf `{name}` of the state has a shape but no values.")
        if _is_key(leaf):
            entry["key"] = str(jr.key_impl(leaf))
            leaf = jr.key_data(leaf)
        array = np.asarray(leaf)
        if array.dtype.hasobject:
            raise TypeError(f"Leaf `{name}` of the state holds Python objects, not numbers.")
        entry.update(offset=offset, size=array.nbytes)
        parts.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        offset += array.nbytes
    # Never empty, since orbax does not store nothing.
    return table, np.concatenate([*parts, np.zeros(1, np.uint8)])


def mismatches(template: Any, table: Table) -> list[str]:
    """In words, how the leaves of a template differ from those of a checkpoint."""
    expected = {jtu.keystr(path): _describe(x) for path, x in jtu.tree_leaves_with_path(template)}
    expected = {name: kind for name, kind in expected.items() if kind is not None}
    found = {name: entry["type"] for name, entry in table.items()}
    return [
        f"leaf `{name or '(the whole state)'}`: expected {expected.get(name, 'no such leaf')}, "
        f"found {found.get(name, 'no such leaf')}"
        for name in dict.fromkeys([*expected, *found])
        if expected.get(name) != found.get(name)
    ]


def unpack(template: Any, table: Table, data: np.ndarray) -> Any:
    """The template with all data from a checkpoint; there must be no `mismatches`."""

    def fill(path, leaf):
        entry = table.get(jtu.keystr(path))
        if entry is None:
            return leaf
        if "value" in entry:
            return complex(*entry["value"]) if type(leaf) is complex else entry["value"]
        part = data[entry["offset"] : entry["offset"] + entry["size"]]
        return _like(leaf, part, entry.get("key"))

    return jtu.tree_map_with_path(fill, template)


def _describe(leaf: Any) -> str | None:
    """The type of a leaf in words, such as `float32[2,3]`; `None` if it is no data."""
    if type(leaf) in SCALARS:
        return f"Python {type(leaf).__name__}"
    if isinstance(leaf, ARRAYS):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return None


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _like(leaf: Any, data: np.ndarray, key: str | None) -> Any:
    """Bytes in the form of a leaf of the template."""
    if key is not None:
        like = jr.key_data(jr.key(0, impl=key))
        array = data.view(like.dtype).reshape(*leaf.shape, *like.shape)
    else:
        array = data.view(leaf.dtype).reshape(leaf.shape)
    # A copy: what shares memory with NumPy cannot be donated to JAX.
    if isinstance(leaf, np.generic):
        return array[()].copy()
    if isinstance(leaf, np.ndarray):
        return array.copy()
    result = jnp.array(array)
    if key is not None:
        result = jr.wrap_key_data(result, impl=key)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return result if leaf.sharding is None else jax.device_put(result, leaf.sharding)
    if getattr(leaf, "weak_type", False):  # keys have none
        # Or promotion would take another way. An update keeps the type of what is updated.
        result = leaf.at[...].set(result)
    return jax.device_put(result, leaf.sharding) if leaf.committed else result
