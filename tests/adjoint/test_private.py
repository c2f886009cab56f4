"""The private names of diffrax, equinox and JAX that the adjoint uses are what they were."""

import importlib
import inspect

import pytest


ADVICE = "`taynode/adjoint/private.py` has to be adapted to this version of its libraries."
SIGNATURES = {
    "diffrax._integrate:loop": "solver stepsize_controller event saveat t0 t1 dt0 max_steps terms "
    "args init_state inner_while_loop outer_while_loop progress_meter",
    "diffrax._heuristics:is_unsafe_sde": "terms",
    "equinox.internal._loop.common:common_rewrite": "cond_fun body_fun init_val max_steps buffers "
    "makes_false_steps",
    "jax._src.core:unmapped_aval": "size axis aval explicit_mesh_axis",
    "equinox.internal._loop.common:_select_if_vmap_impl": "pred x y",
    "equinox.internal._loop.common:_maybe_set_impl": "pred xs x i_dynamic_leaves i_static "
    "i_treedef kwargs makes_false_steps",
}
FIELDS = {
    "diffrax._integrate:State": {"y", "tprev", "tnext", "solver_state", "controller_state"},
}


def find(place):
    module, _, name = place.partition(":")
    found = getattr(importlib.import_module(module), name, None)
    assert found is not None, f"`{place}` is gone. {ADVICE}"
    return found


@pytest.mark.parametrize("place", SIGNATURES)
def test_signatures(place):
    found = list(inspect.signature(find(place)).parameters)
    assert found == SIGNATURES[place].split(), f"`{place}` has other parameters. {ADVICE}"


@pytest.mark.parametrize("place", FIELDS)
def test_fields(place):
    assert FIELDS[place] <= set(find(place).__annotations__), f"`{place}` has changed. {ADVICE}"


@pytest.mark.parametrize("name", ["select_if_vmap", "maybe_set"])
def test_primitives(name):
    primitive = find(f"equinox.internal._loop.common:{name}_p")
    assert primitive.name == name, ADVICE
