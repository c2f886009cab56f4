"""The devices that a run trains on."""

import contextlib
import functools
import os
import warnings
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...groups import group_mesh
from ..config import ConfigError, positive, TrainConfig
from .checkpoints import Restored


T = TypeVar("T")
# Where a checkpoint has the topology.
TOPOLOGY = "topology"
VIRTUAL = "--xla_force_host_platform_device_count"


class TopologyWarning(UserWarning):
    """A run continues on other devices than it was on before."""


class Topology(NamedTuple):
    """What the bits of a result depend on, besides the program and the kind of processor."""

    devices: int
    processes: int

    @classmethod
    def of(cls, mesh: Mesh | None) -> "Topology":
        """That of a mesh."""
        return cls(1 if mesh is None else mesh.size, jax.process_count())

    def __str__(self) -> str:
        devices = "1 device" if self.devices == 1 else f"{self.devices} devices"
        return devices if self.processes == 1 else f"{devices} of {self.processes} processes"


def check_topology(now: Topology, restored: Restored) -> None:
    """Warn if a run was on other devices before."""
    before = restored.info.get(TOPOLOGY)
    if before is not None and (before := Topology(*before)) != now:
        warnings.warn(
            f"Until step {restored.step} the run was on {before}, and it continues on {now}. So "
            "batches are divided into other groups, and the parameters will not be those of an "
            "undisturbed run.",
            TopologyWarning,
            stacklevel=3,
        )


def make_cpu_devices(number: int) -> None:
    """Divide the CPU of this process into devices, unless it has been used or divided before."""
    if VIRTUAL not in os.environ.get("XLA_FLAGS", ""):
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", number)


def mesh_for(number: int | None) -> Mesh | None:
    """The devices of a run, or `None` for a single one, which needs no mesh.

    **Arguments:**

    - `number`: the number of devices; by default, one if there is one process, and all devices if
        there are several. Each process has as many of them.
    """
    processes, count = jax.process_count(), jax.device_count()
    if number is None:
        number = 1 if processes == 1 else count
    positive("devices", number)
    if number > count:
        raise ConfigError(
            f"`devices` must be at most {count}, the number of devices that JAX finds, got "
            f"{number}. On CPUs, set the environment variable XLA_FLAGS to "
            f"{VIRTUAL}={-(-number // processes)} for more of them."
        )
    if number % processes:
        raise ConfigError(
            f"`devices` must be a multiple of {processes}, the number of processes, got {number}."
        )
    if number == 1:
        return None
    each = number // processes
    of = lambda process: [x for x in jax.devices() if x.process_index == process][:each]
    chosen = [device for process in range(processes) for device in of(process)]
    if len(chosen) < number:
        raise ConfigError(f"`devices`: some process has fewer than {each} devices.")
    return group_mesh(chosen)


def check_divisible(config: TrainConfig, number: int) -> None:
    """Raise an error unless a training batch can be divided among so many devices."""
    if number == 1:
        return
    if config.batch_size % number:
        few = "at least" if config.batch_size < number else "a multiple of"
        raise ConfigError(
            f"`batch_size` must be {few} {number}, the number of devices, got "
            f"{config.batch_size}: each device solves its own part of the batch."
        )
    if config.training.adjoint == "checkpoint":
        raise ConfigError(
            "`adjoint` checkpoint works on a single device only: use accepted_steps, which has the "
            "same gradients."
        )


def everywhere(tree: T, mesh: Mesh | None) -> T:
    """A pytree with a copy of each array on all devices. Each process has the same values."""
    if mesh is None:
        return tree
    leaves, treedef = jtu.tree_flatten(tree)
    arrays = [i for i, x in enumerate(leaves) if isinstance(x, jax.Array | np.ndarray)]
    kinds = tuple(jr.key_impl(leaves[i]) if _is_key(leaves[i]) else None for i in arrays)
    # From NumPy, since arrays of one process are not those of another one for JAX.
    plain = lambda x: np.asarray(jr.key_data(x) if _is_key(x) else x)
    values = [plain(leaves[i]) for i in arrays]
    for i, x in zip(arrays, _copier(mesh)(values, kinds), strict=True):
        leaves[i] = x
    return jtu.tree_unflatten(treedef, leaves)


@functools.cache
def _copier(mesh: Mesh) -> Callable:
    """A function that copies arrays to all devices, which is compiled once for the same shapes."""

    def copied(values: list[jax.Array], kinds: tuple[Hashable, ...]) -> list[jax.Array]:
        pairs = zip(values, kinds, strict=True)
        return [jr.wrap_key_data(x, impl=kind) if kind else jnp.copy(x) for x, kind in pairs]

    return jax.jit(copied, static_argnums=1, out_shardings=NamedSharding(mesh, PartitionSpec()))


def here(tree: T) -> T:
    """A pytree with arrays that `everywhere` has copied on the first device of this process."""
    local = lambda x: jnp.asarray(x.addressable_data(0)) if isinstance(x, jax.Array) else x
    return jtu.tree_map(local, tree)


def _is_key(x: jax.Array | np.ndarray) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
