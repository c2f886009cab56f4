"""Pytrees as bytes with a table of their leaves, and back again, bit for bit."""

from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from jaxtyping import PyTree

from ..files import Json


SCALARS = (bool, int, float, complex)
ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)

# The descriptions of leaves by their path, such as `.arrays.weight` or `[0]['x']`.
Leaves: TypeAlias = dict[str, Json]
State = TypeVar("State")


def pack(state: PyTree) -> tuple[Leaves, bytes]:
    """The table of a state's leaves, and the bytes of its arrays.

    Python numbers are stored in the table. Leaves that hold no data, such as functions, are not
    stored.
    """
    table: Leaves = {}
    data = bytearray()
    for path, leaf in jtu.tree_leaves_with_path(state):
        if (kind := _describe(leaf)) is None:
            continue
        name = jtu.keystr(path)
        if name in table:
            raise ValueError(f"Two leaves of the state have the same path, `{name}`.")
        entry = table[name] = {"type": kind}
        if type(leaf) in SCALARS:
            entry["value"] = str(leaf) if type(leaf) is complex else leaf
            continue
        if _is_key(leaf):
            entry["key"] = str(jr.key_impl(leaf))
            leaf = jr.key_data(leaf)
        array = np.asarray(leaf)
        if array.dtype.hasobject:
            raise TypeError(f"Leaf `{name}` of the state must hold numbers, got {leaf!r}.")
        entry["offset"] = len(data)
        data += array.tobytes()
    return table, bytes(data)


def unpack(template: State, table: Leaves, data: memoryview, part: str = "") -> State:
    """The template, filled with the data of the leaves below the path `part`.

    Raises a `ValueError` that names the leaves that differ in type or shape.
    """
    leaves = [(part + jtu.keystr(path), leaf) for path, leaf in jtu.tree_leaves_with_path(template)]
    expected = {name: kind for name, leaf in leaves if (kind := _describe(leaf)) is not None}
    found = {name: entry["type"] for name, entry in table.items() if _is_below(name, part)}
    wrong = [
        f"leaf `{name or '(the whole state)'}`: expected {expected.get(name, 'no such leaf')}, "
        f"found {found.get(name, 'no such leaf')}"
        for name in dict.fromkeys([*expected, *found])
        if expected.get(name) != found.get(name)
    ]
    if wrong:
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise ValueError("; ".join(wrong[:5]) + more)
    filled = [_fill(leaf, table[name], data) if name in found else leaf for name, leaf in leaves]
    return jtu.tree_unflatten(jtu.tree_structure(template), filled)


def _is_below(name: str, part: str) -> bool:
    # `.arrays_copy` is not below `.arrays`.
    return name.startswith(part) and name[len(part) :][:1] in ("", ".", "[")


def _describe(leaf: object) -> str | None:
    """The type of a leaf in words, such as `float32[2,3]`; `None` if it holds no data."""
    if type(leaf) in SCALARS:
        return f"Python {type(leaf).__name__}"
    if isinstance(leaf, ARRAYS):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return None


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _fill(leaf: Any, entry: Json, data: memoryview) -> Any:
    """A leaf of the same kind as that of the template, with the stored value."""
    if "value" in entry:
        return type(leaf)(entry["value"])
    stored = jax.eval_shape(jr.key_data, leaf) if _is_key(leaf) else leaf
    array = np.ndarray(stored.shape, stored.dtype, data, entry["offset"])
    if isinstance(leaf, np.ndarray | np.generic):
        return array.copy() if isinstance(leaf, np.ndarray) else array[()]
    # A copy, too: arrays that share memory with NumPy cannot be donated.
    result = jnp.array(array)
    if _is_key(leaf):
        result = jr.wrap_key_data(result, impl=entry["key"])
    elif isinstance(leaf, jax.Array) and leaf.weak_type:
        # An update keeps the weak type, which decides how dtypes are promoted.
        result = leaf.at[...].set(result)
    committed = getattr(leaf, "committed", True)
    return jax.device_put(result, leaf.sharding if committed else None)
