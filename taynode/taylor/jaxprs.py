"""The parts of jaxprs that differ between versions of JAX.

JAX's compatibility promise does not cover jaxprs and the parameters of primitives. Nothing here
imports a private module. Checked with jax 0.10.2 and 0.12.0; recheck with each minor release.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jax.extend.core import JaxprEqn


def open_jaxpr(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """Return the jaxpr and its constants, whether it is closed or has none."""
    inner = getattr(jaxpr, "jaxpr", None)
    return (jaxpr, ()) if inner is None else (inner, jaxpr.consts)


def bind(eqn: JaxprEqn, values: Sequence[Any], changes: Mapping[str, Any]) -> list[Any]:
    """Apply the primitive of an equation to values; `changes` override its parameters."""
    params = eqn.primitive.get_bind_params({**eqn.params, **changes})
    with eqn.ctx.manager:
        out = eqn.primitive.bind(*values, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def scan_lengths(params: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many of a scan's inputs are constants, and how many are carried."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # from jax 0.12 on
    return len(consts), len(carry)
