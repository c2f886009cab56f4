"""Training on several devices, one group of the batch on each."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import taynode as tn
from taynode.groups import check_rows


ROOT = Path(__file__).parents[2]


def on_devices(*names):
    """What the program of this name finds on eight virtual devices."""
    command = [sys.executable, "-m", "tests.groups.on_devices", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(found, expected, num_groups):
    assert found["nfe"] == expected["nfe"]
    # Groups have step sizes of their own.
    assert len(set(found["nfe"])) > 1
    assert len(found["nfe"]) == num_groups
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-12)
    np.testing.assert_allclose(found["gradient"], expected["gradient"], rtol=1e-10)
    # The loss and the gradient, once, and nothing inside of a solve.
    assert {name for _, name, _, _ in found["crossing"]} == {"all-reduce"}
    assert not [crossing for crossing in found["crossing"] if crossing[0]]
    assert sum(kind.count("f64") for _, _, kind, _ in found["crossing"]) == 2


def test_groups_on_devices_of_their_own_equal_groups_in_turn():
    found = on_devices("sampled-2", "sampled-8", "rows", "lab", "means")
    check(*found["sampled-2"], 2)
    check(*found["sampled-8"], 8)
    np.testing.assert_allclose(*found["rows"], rtol=1e-12)
    check_lab(*found["lab"])
    check_means(*found["means"])


def check_means(together, groups):
    """The weight, the penalty and a probe, too, where groups have much and little to do."""
    by_name = {name: np.array([group[name] for group in groups]) for name in together}
    expected = {name: np.mean(values) for name, values in by_name.items()}
    expected |= {"failed": np.sum(by_name["failed"]), "nfe_most": np.max(by_name["nfe"])}
    for name, value in expected.items():
        np.testing.assert_allclose(together[name], value, rtol=1e-10, err_msg=name)
    # Else a group could stand for all.
    for name in ("loss", "penalty", "nfe", "gradient", "probe"):
        assert len(set(by_name[name])) == len(groups), name
    assert together["weight"] == 0.3
    assert np.isnan(together["never"])


def check_lab(groups, whole):
    for name in ("record", "loss", "again"):
        np.testing.assert_allclose(groups[name], whole[name], rtol=1e-9)
    assert groups["row"] == {"devices": 8, "training_nfe_most": 6.0}
    assert whole["row"] == {}


@pytest.mark.slow
def test_other_quadratures_and_single_solves_in_groups():
    for found in on_devices("augmented-2", "single-2").values():
        check(*found, 2)


@pytest.mark.slow
def test_a_vector_field_that_is_divided_among_devices():
    """The derivatives of the penalty, too, are computed on the devices that have the weights."""
    ((loss, nfe), grads), ((loss_, nfe_), grads_) = on_devices("tensor")["tensor"]
    assert nfe == nfe_
    np.testing.assert_allclose(loss, loss_, rtol=1e-12)
    for found, expected in zip(grads, grads_, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_what_groups_are_for():
    """In a solve of a sharded batch numbers cross in each step. So they would be seen, too."""
    inside = [kind for in_loop, _, kind, _ in on_devices("jax")["jax"] if in_loop]
    assert any("f64" in kind for kind in inside)


def loss_fn(model, batch, *, key):
    return jnp.mean((batch @ model) ** 2 + jr.normal(key, (len(batch),))), jr.normal(key)


def test_one_device_is_one_group():
    model, batch, key = jnp.arange(3.0), np.ones((4, 3)), jr.key(0)
    run = tn.grouped_value_and_grad(loss_fn, has_aux=True)
    (loss, aux), grads = jax.jit(run)(model, batch, key=key)
    expected = jax.jit(jax.value_and_grad(loss_fn, has_aux=True))
    (loss_, aux_), grads_ = expected(model, batch, key=jr.fold_in(key, 0))
    for found, wanted in ((loss, loss_), (aux, aux_[None]), (grads, grads_)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_loss_without_random_numbers_and_more_results():
    run = tn.grouped_value_and_grad(lambda model, batch, power: jnp.mean((batch * model) ** power))
    loss, grads = jax.jit(run)(jnp.array(2.0), np.full(4, 3.0), 2.0)
    assert (float(loss), float(grads)) == (36.0, 36.0)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (np.ones((0, 2)), "`batch` has 0 rows"),
        ((np.ones((4, 2)), np.ones(3)), r"got arrays of the shapes \(4, 2\), \(3,\)"),
        ((np.ones((4, 2)), np.ones(())), r"shapes \(4, 2\), \(\)"),
        ("rows", r"shapes \(none\)"),
    ],
)
def test_batches_that_have_no_rows_are_refused(batch, message):
    for run in (tn.grouped(lambda model, batch: batch), tn.grouped_value_and_grad(loss_fn)):
        with pytest.raises(ValueError, match=message):
            run(jnp.ones(2), batch)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (6, "`batch` has 6 rows, fewer than the number of devices, 8"),
        (12, "`batch` has 12 rows, which is not a multiple of the number of devices, 8"),
    ],
)
def test_rows_that_cannot_be_divided_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        check_rows(np.ones((rows, 2)), 8)


def test_meshes_of_jax_make_mesh():
    """BUG, fixed: their axes are explicit, and `jax.shard_map` does not shard arrays by itself."""
    mesh = jax.make_mesh((1,), ("data",))
    run = tn.grouped_value_and_grad(loss_fn, mesh, has_aux=True)
    model, batch, key = jnp.arange(3.0), np.ones((4, 3)), jr.key(0)
    expected = tn.grouped_value_and_grad(loss_fn, tn.group_mesh(), has_aux=True)
    (loss, _), grads = jax.jit(run)(model, batch, key=key)
    (loss_, _), grads_ = jax.jit(expected)(model, batch, key=key)
    np.testing.assert_allclose(loss, loss_, rtol=1e-12)
    np.testing.assert_allclose(grads, grads_, rtol=1e-12)
