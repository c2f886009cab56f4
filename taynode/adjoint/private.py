"""All private names of diffrax, equinox and JAX that the adjoint uses.

Checked with diffrax 0.7.2, equinox 0.13 and jax 0.10. `tests/adjoint/test_private.py` fails if they
change.
"""

from diffrax._heuristics import is_unsafe_sde as is_unsafe_sde
from diffrax._integrate import loop as loop, State as State
from equinox.internal._loop.common import (
    common_rewrite as common_rewrite,
    fixed_asarray as fixed_asarray,
)
from jax._src.core import unmapped_aval as unmapped_aval


# The operand of primitives of equinox that the reverse pass does not read: the former state of a
# sample that makes no step, and the former contents of a buffer.
UNREAD_OPERAND = {"select_if_vmap": 2, "maybe_set": 1}
