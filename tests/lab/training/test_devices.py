"""Devices that a run cannot have, and runs that continue on others. `tests/groups` has the rest."""

import dataclasses

import jax
import jax.random as jr
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from taynode import lab
from taynode.groups import group_mesh
from taynode.lab.config import ConfigError, SolveConfig
from taynode.lab.training.checkpoints import Restored
from taynode.lab.training.devices import (
    check_divisible,
    check_topology,
    everywhere,
    Topology,
    TopologyWarning,
)

from .tiny_task import Tiny


def test_more_devices_than_there_are(tmp_path):
    message = r"`devices` must be at most \d+, .* got 64. .*device_count=64 for more of them"
    with pytest.raises(ConfigError, match=message):
        lab.train(Tiny().defaults("smoke"), Tiny(), tmp_path / "run", devices=64)
    assert not (tmp_path / "run").exists()


def test_no_devices():
    with pytest.raises(ConfigError, match="`devices` must be positive, got 0"):
        lab.train(Tiny().defaults("smoke"), Tiny(), "nowhere", devices=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 4}, "`batch_size` must be at least 8, the number of devices, got 4"),
        ({"batch_size": 20}, "`batch_size` must be a multiple of 8, the number of devices, got 20"),
        ({"training": SolveConfig(adjoint="checkpoint")}, "`adjoint` checkpoint works on a single"),
    ],
)
def test_settings_that_do_not_fit_devices(changes, message):
    config = dataclasses.replace(Tiny().defaults("smoke"), **changes)
    check_divisible(config, 1)
    with pytest.raises(ConfigError, match=message):
        check_divisible(config, 8)


def test_what_is_copied_to_devices_is_compiled_once(monkeypatch):
    """BUG, fixed: each call compiled a program of its own, for the key of each batch."""
    traced, wrap = [], jr.wrap_key_data

    def counted(x, impl):
        traced.append(impl)
        return wrap(x, impl=impl)

    monkeypatch.setattr(jr, "wrap_key_data", counted)
    mesh = group_mesh(jax.devices()[:1])
    for seed in range(3):
        tree = {"key": jr.key(seed), "values": np.arange(7), "name": "mine"}
        found = everywhere(tree, mesh)
        assert jr.key_data(found["key"]).tolist() == jr.key_data(tree["key"]).tolist()
        assert found["values"].tolist() == list(range(7))
        assert found["values"].sharding == NamedSharding(mesh, PartitionSpec())
        assert found["name"] == "mine"
    assert len(traced) == 1


@pytest.mark.filterwarnings("error")
def test_other_devices_than_before_are_noticed():
    check_topology(Topology(1, 1), Restored(5, None, {}))
    check_topology(Topology(1, 1), Restored(5, None, {"topology": [1, 1]}))
    with pytest.warns(TopologyWarning, match="Until step 5 the run was on 8 devices of 2 proc"):
        check_topology(Topology(1, 1), Restored(5, None, {"topology": [8, 2]}))
