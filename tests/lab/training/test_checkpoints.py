"""What is saved comes back bit for bit, or is refused with a reason."""

import json
import re
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import ml_dtypes
import numpy as np
import optax
import pytest
from hypothesis import given, settings, strategies as st

from taynode.lab.training.checkpoints import CheckpointError, Checkpoints


DTYPES = [
    *(np.dtype(x) for x in "?bhilBHILefdFDg"),
    *(np.dtype(x) for x in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4)),
    np.dtype(">f4"),
    np.dtype("M8[s]"),
]


def bits(leaf):
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jr.key_data(leaf)
    return np.asarray(leaf).tobytes()


def assert_same(first, second):
    """The same structure, types and bits."""
    assert jtu.tree_structure(first) == jtu.tree_structure(second)
    for a, b in zip(jtu.tree_leaves(first), jtu.tree_leaves(second), strict=True):
        assert type(a) is type(b)
        for name in ("dtype", "shape", "weak_type", "committed", "sharding"):
            assert getattr(a, name, None) == getattr(b, name, None)
        if isinstance(a, jax.Array | np.ndarray | np.generic | complex | float | int):
            assert bits(a) == bits(b)
        else:
            assert a is b


def zeros_like(state):
    """The same structure, with other values."""

    def change(x):
        if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            return jnp.broadcast_to(jr.key(99, impl=jr.key_impl(x)), x.shape)
        if isinstance(x, jax.Array):
            return x.at[...].set(jnp.zeros((), x.dtype))
        if isinstance(x, np.ndarray | np.generic):
            zeros = np.zeros_like(x)
            return zeros if isinstance(x, np.ndarray) else zeros[()]
        return type(x)(0) if type(x) in (bool, int, float, complex) else x

    return jtu.tree_map(change, state)


def round_trip(directory, state, template=None, **kwargs):
    Checkpoints(directory, fingerprint="a").save(3, state, **kwargs)
    restored = Checkpoints(directory, fingerprint="a").restore(
        zeros_like(state) if template is None else template
    )
    assert restored.step == 3
    return restored


class Model(eqx.Module):
    mlp: eqx.nn.MLP
    scale: float
    activation: Any
    name: str
    nothing: None = None


def test_a_whole_training_state(tmp_path):
    model = Model(eqx.nn.MLP(3, 2, 8, 2, key=jr.key(0)), 0.1, jnp.tanh, "test")
    optimizer = optax.adam(1e-3)
    opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    state = (model, opt_state, jr.key(7), {"step": jnp.array(5)})
    restored = round_trip(tmp_path, state, info={"loss": 0.5, "seeds": (1, 2)})
    assert_same(restored.state, state)
    assert restored.info == {"loss": 0.5, "seeds": [1, 2]}


# Functions, since arrays cannot be made before JAX is set up.
LEAVES = {
    "key": lambda: jr.key(3),
    "keys": lambda: jr.split(jr.key(3, impl="rbg"), 4),
    "no keys": lambda: jr.split(jr.key(3), 2)[:0],
    "raw key": lambda: jr.PRNGKey(3),
    "weak": lambda: jnp.asarray(1.5),
    "weak array": lambda: jnp.broadcast_to(jnp.asarray(1.5), (2, 3)),
    "bfloat16": lambda: jnp.asarray(1.5, jnp.bfloat16),
    "nan": lambda: jnp.array([0x7FC12345, 0xFF800001, 2**31], jnp.uint32).view(jnp.float32),
    "empty": lambda: jnp.zeros((2, 0, 3), jnp.float32),
    "committed": lambda: jax.device_put(jnp.arange(3), jax.devices()[0]),
    "numpy scalar": lambda: np.float32(0.1),
    "fortran": lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": lambda: np.arange(10)[::2],
    "bool": lambda: True,
    "negative zero": lambda: -0.0,
    "infinite": lambda: float("inf"),
    "complex": lambda: complex(-0.0, 1.0),
}


@pytest.mark.parametrize("kind", LEAVES)
def test_kinds_of_leaves(tmp_path, kind):
    state = {"leaf": LEAVES[kind](), "list": [LEAVES[kind](), jnp.ones(1)]}
    assert_same(round_trip(tmp_path, state).state, state)


def test_huge_integer(tmp_path):
    assert round_trip(tmp_path, -(2**200)).state == -(2**200)


def test_nan(tmp_path):
    assert np.isnan(round_trip(tmp_path, float("nan")).state)


@settings(max_examples=40)
@given(data=st.data())
def test_any_bits_of_any_dtype(tmp_path_factory, data):
    def array():
        dtype = data.draw(st.sampled_from(DTYPES))
        shape = data.draw(st.lists(st.integers(0, 3), max_size=3))
        raw = np.random.default_rng(data.draw(st.integers(0, 99)))
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(raw.bytes(size), dtype).reshape(shape)

    state = [array() for _ in range(data.draw(st.integers(0, 4)))]
    restored = round_trip(tmp_path_factory.mktemp("run"), state).state
    for a, b in zip(restored, state, strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_template_of_shapes_alone(tmp_path):
    state = {"w": jnp.arange(6.0).reshape(2, 3), "key": jr.key(1), "empty": jnp.zeros((0, 2))}
    template = jax.eval_shape(lambda: state)
    assert_same(round_trip(tmp_path, state, template).state, state)


def test_restored_arrays_can_be_donated_and_written_to(tmp_path):
    restored = round_trip(tmp_path, {"jax": jnp.arange(1000.0), "numpy": np.zeros(3)}).state
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)
    donating(restored["jax"])
    assert restored["jax"].is_deleted()
    restored["numpy"][0] = 1


TEMPLATES = {
    r"\['w'\].* float32\[2,3\], found float32\[3\]": lambda: {"w": np.zeros((2, 3), np.float32)},
    r"\['w'\].* float64\[3\], found float32\[3\]": lambda: {"w": jnp.zeros(3)},
    r"\['w'\].* Python float, found float32\[3\]": lambda: {"w": 0.5},
    r"\['v'\].* float64\[3\], found no .*\['w'\].* no such leaf": lambda: {"v": jnp.zeros(3)},
    r"\[0\].* float32\[3\], found no such leaf": lambda: [jnp.zeros(3, jnp.float32)],
    r"the whole state.* float32\[3\], found no": lambda: jnp.zeros(3, jnp.float32),
    r"\['w'\].* key<fry>\[3\], found float32": lambda: {"w": jr.split(jr.key(0), 3)},
    r"\['w'\].* no such leaf, found float32": lambda: {"w": jnp.tanh},
    r"and 5 more": lambda: {f"x{i}": i for i in range(9)},
}


@pytest.mark.parametrize("words", TEMPLATES)
def test_template_that_does_not_fit(tmp_path, words):
    checkpoints = Checkpoints(tmp_path, fingerprint="a")
    checkpoints.save(0, {"w": jnp.zeros(3, jnp.float32)})
    with pytest.raises(CheckpointError, match=words):
        checkpoints.restore(TEMPLATES[words]())


def test_leaves_that_cannot_be_saved(tmp_path):
    checkpoints = Checkpoints(tmp_path, fingerprint="a")
    with pytest.raises(TypeError, match=r"\['a'\].*must hold numbers"):
        checkpoints.save(0, {"a": np.array([None])})
    with pytest.raises(TypeError, match=r"\['a'\].*ShapeDtypeStruct"):
        checkpoints.save(0, {"a": jax.ShapeDtypeStruct((2,), jnp.float32)})
    with pytest.raises(TypeError, match="not JSON serializable"):
        checkpoints.save(0, {}, info={"w": np.ones(3)})
    with pytest.raises(ValueError, match="`step`"):
        checkpoints.save(-1, {})
    with pytest.raises(ValueError, match="`keep`"):
        Checkpoints(tmp_path, keep=0, fingerprint="a")
    assert list(tmp_path.iterdir()) == []


def test_newest_are_kept(tmp_path):
    directory = tmp_path / "new" / "run"
    checkpoints = Checkpoints(directory, keep=2, fingerprint="a")
    assert checkpoints.restore({}) is None
    assert checkpoints.steps() == []
    for step in (0, 5, 10, 10_000_000_000):
        checkpoints.save(step, {"x": step})
    assert checkpoints.steps() == [10, 10_000_000_000]
    assert checkpoints.restore({"x": 0}).state == {"x": 10_000_000_000}
    assert len(list(directory.glob("step_*"))) == 2


def test_saving_a_step_again_replaces_it(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2, fingerprint="a")
    for step, x in [(1, 1), (2, 2), (2, 3), (2, 4)]:
        checkpoints.save(step, {"x": x})
    assert checkpoints.steps() == [1, 2]
    assert checkpoints.restore({"x": 0}).state == {"x": 4}


def test_going_back_is_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path, fingerprint="a")
    checkpoints.save(7, {"x": 7})
    with pytest.raises(CheckpointError, match=r"Step 3 is before step 7.*Restore"):
        checkpoints.save(3, {"x": 3})
    assert checkpoints.steps() == [7]


def test_another_configuration_is_refused(tmp_path):
    config = {"seed": 0, "solve": {"rtol": 1e-3, "solver": "dopri5"}, "shape": (2, 3)}
    Checkpoints(tmp_path, fingerprint="a", config=config).save(0, {"x": 0})
    other = {**config, "solve": {"rtol": 1e-4, "solver": "dopri5"}, "new": True}
    checkpoints = Checkpoints(tmp_path, fingerprint="b", config=other)
    words = (
        "belongs to another configuration: its fingerprint is `a` instead of `b`. `solve.rtol` is "
        "0.0001 here and 0.001 there; `new` is True here and '(unset)' there."
    )
    with pytest.raises(CheckpointError, match=re.escape(words)):
        checkpoints.restore({"x": 0})
    with pytest.raises(CheckpointError, match=re.escape(words)):
        checkpoints.save(1, {"x": 1})
    with pytest.raises(CheckpointError, match="instead of `c`"):
        Checkpoints(tmp_path, fingerprint="c").restore({"x": 0})
    assert Checkpoints(tmp_path, fingerprint="a").restore({"x": 1}).state == {"x": 0}


class Parts(NamedTuple):
    arrays: Any
    arrays_copy: Any
    opt_state: Any


def test_part_of_a_state(tmp_path):
    model = {"w": jnp.arange(3.0), "key": jr.key(1), "act": jnp.tanh}
    state = (Parts(model, jnp.zeros(9), [jnp.ones(2)]), 5)
    checkpoints = Checkpoints(tmp_path, fingerprint="a")
    checkpoints.save(3, state)
    assert_same(checkpoints.restore(zeros_like(model), part="[0].arrays").state, model)
    shapes = jax.eval_shape(lambda: model["w"])
    assert_same(checkpoints.restore(shapes, part="[0].arrays['w']").state, model["w"])
    assert checkpoints.restore(0, part="[1]").state == 5
    with pytest.raises(CheckpointError, match=r"`\[0\]\.arrays\['key'\]`: expected no such leaf"):
        checkpoints.restore({"w": jnp.zeros(3)}, part="[0].arrays")
    with pytest.raises(CheckpointError, match=r"`\.model`: expected .*, found no such leaf"):
        checkpoints.restore(jnp.zeros(3), part=".model")


def test_first_line_is_json(tmp_path):
    """So that `head -1` and any tool for JSON show what a checkpoint holds."""
    Checkpoints(tmp_path, fingerprint="a").save(4, {"x": np.ones(3)}, info={"loss": 1.5})
    with open(tmp_path / "step_000000004.ckpt", "rb") as file:
        header = json.loads(file.readline())
    assert (header["step"], header["fingerprint"], header["info"]) == (4, "a", {"loss": 1.5})
    assert header["leaves"] == {"['x']": {"type": "float64[3]", "offset": 0}}


def test_saving_is_fast(tmp_path):
    """160 000 parameters with momentum: some 10 ms, with much room for slow and busy disks."""
    state = {name: jnp.ones((400, 400), jnp.float32) for name in ("parameters", "momentum")}
    checkpoints = Checkpoints(tmp_path, fingerprint="a")
    seconds = []
    for step in range(6):
        start = time.perf_counter()
        checkpoints.save(step, state)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
