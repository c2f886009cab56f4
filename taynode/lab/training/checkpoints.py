"""Checkpoints that survive a kill, a full disk and flipped bits.

A checkpoint is written under another name, checked by reading it back, and renamed when all of it
is on disk. Before it is used, its files are compared with their SHA-256.
"""

import contextlib
import errno
import functools
import importlib.metadata
import os
import platform
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import atomic
from .leaves import mismatches, pack, unpack
from .manifest import (
    check_files,
    Damaged,
    differences,
    plain,
    read_manifest,
    write_manifest,
)
from .storage import read_bytes, write_bytes


STATE = "state"
REASONS = {
    errno.ENOSPC: "there is no space left on the disk. Free some and save again",
    errno.EDQUOT: "the disk quota is used up. Free some space and save again",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "there is no permission to write there",
    errno.EPERM: "there is no permission to write there",
    errno.EEXIST: "there is a file where the directory should be",
    errno.ENOTDIR: "there is a file where the directory should be",
}


class CheckpointError(Exception):
    """A checkpoint cannot be written, or none can be used."""


class SaveError(CheckpointError):
    """A checkpoint cannot be written; those that are there are untouched."""


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was skipped, or an old one could not be deleted."""


class Restored(NamedTuple):
    """What was saved."""

    step: int
    state: Any
    info: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run, in a directory of their own.

    **Arguments:**

    - `directory`: where they are; made by the first save.
    - `keep`: how many to keep, at least 1. Damaged ones do not count.
    - `fingerprint`: a hash of the configuration. Checkpoints of another one are refused.
    - `config`: the configuration itself, to tell how that of a refused checkpoint differs.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep: int = 3,
        fingerprint: str,
        config: dict[str, Any] | None = None,
    ):
        if keep < 1:
            raise ValueError(f"`keep` must be at least 1, got {keep}.")
        self.directory = Path(directory)
        self.keep = keep
        self.fingerprint = fingerprint
        self.config = None if config is None else plain(config)
        # Not if somebody else is saving right now, and not if there is only permission to read.
        with contextlib.suppress(OSError, atomic.Busy):
            if atomic.leftovers(self.directory):
                with atomic.exclusive(self.directory):
                    pass

    def steps(self) -> list[int]:
        """The steps of all undamaged checkpoints, in order. Reads all of their files."""
        return sorted({step for step, _, path in self._entries() if _is_good(path)})

    def save(self, step: int, state: Any, *, info: dict[str, Any] | None = None) -> None:
        """Save a state: when this returns, it is on disk and has been read back.

        **Arguments:**

        - `step`: how far the run is; not before that of an undamaged checkpoint.
        - `state`: a pytree. Arrays, keys and Python numbers are stored; other leaves, such as
            functions, are not, and come from the template of `restore`.
        - `info`: a dictionary of anything that JSON can hold.
        """
        if step < 0:
            raise ValueError(f"`step` must be at least 0, got {step}.")
        table, data = pack(state)
        info = plain(info or {})
        content = {
            "step": step,
            "fingerprint": self.fingerprint,
            "config": info.get("config") if self.config is None else self.config,
            "info": info,
            "versions": _versions(),
            "leaves": table,
        }
        try:
            atomic.make(self.directory)
            with atomic.exclusive(self.directory):
                self._refuse_conflict(step)
                final = self.directory / atomic.new_name(self.directory, step)
                with atomic.create(final) as path:
                    write_bytes(path / STATE, data)
                    write_manifest(path, content)
                    read_manifest(path)
                    if not np.array_equal(data, _read_state(path)):
                        raise Damaged("what was read back is not what was written")
                self._prune(final)
        except atomic.Busy:
            raise SaveError(f"Another process is saving to `{self.directory}`.") from None
        except (OSError, Damaged) as error:
            reason = REASONS.get(getattr(error, "errno", None) or 0, str(error))
            raise SaveError(
                f"The checkpoint of step {step} could not be written to `{self.directory}`: "
                f"{reason}. Earlier checkpoints are untouched."
            ) from error

    def restore(self, template: Any) -> Restored | None:
        """The newest undamaged checkpoint, or `None` if there are none at all.

        **Arguments:**

        - `template`: a state of the same structure, shapes and dtypes. Its arrays may be
            `jax.ShapeDtypeStruct`s.
        """
        problems = []
        for _, _, path in self._entries():
            try:
                manifest = read_manifest(path)
                self._refuse_other_run(path, manifest)
                check_files(path, manifest)
                data = _read_state(path)
            except Damaged as error:
                problems.append(f"`{path}`: {error}")
                continue
            for problem in problems:
                warnings.warn(f"Skipped checkpoint {problem}.", CheckpointWarning, stacklevel=2)
            if wrong := mismatches(template, manifest["leaves"]):
                more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
                raise CheckpointError(
                    f"`{path}` does not fit the template: {'; '.join(wrong[:5])}{more}."
                )
            state = unpack(template, manifest["leaves"], data)
            return Restored(manifest["step"], state, manifest["info"])
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems)
            raise CheckpointError(
                f"None of the checkpoints can be used:\n{listed}\nBring one back from a copy, or "
                f"move `{self.directory}` out of the way to start anew."
            )
        return None

    def _entries(self) -> list[tuple[int, int, Path]]:
        try:
            return atomic.entries(self.directory)
        except OSError as error:
            raise CheckpointError(f"`{self.directory}` cannot be read: {error}.") from error

    def _refuse_other_run(self, path: Path, manifest: dict[str, Any]) -> None:
        if manifest["fingerprint"] == self.fingerprint:
            return
        config = manifest["config"]
        known = isinstance(self.config, dict) and isinstance(config, dict)
        different = list(differences(self.config, config)) if known else []
        raise CheckpointError(
            f"`{path}` belongs to another configuration, of fingerprint "
            f"`{manifest['fingerprint']}` instead of `{self.fingerprint}`"
            f"{': ' if different else ''}{'; '.join(different)}. Use that configuration, or "
            "another directory."
        )

    def _refuse_conflict(self, step: int) -> None:
        """Whoever saves without having restored is about to lose one run or the other."""
        for other, _, path in self._entries():
            with contextlib.suppress(Damaged):
                self._refuse_other_run(path, read_manifest(path))
            if other > step and _is_good(path):
                raise CheckpointError(
                    f"Step {step} is before step {other}, which is in `{self.directory}` "
                    "already. Restore that to go on from there, or use another directory."
                )

    def _prune(self, new: Path) -> None:
        """Delete what is behind the newest good ones."""
        good, superfluous = set(), []
        for step, _, path in self._entries():
            if len(good) >= self.keep or step in good:
                superfluous.append(path)
            elif path == new or _is_good(path):
                good.add(step)
        try:
            atomic.discard(superfluous)
        except OSError as error:
            warnings.warn(
                f"Old checkpoints in `{self.directory}` could not be deleted: {error}.",
                CheckpointWarning,
                stacklevel=3,
            )


def _read_state(path: Path) -> np.ndarray:
    try:
        return read_bytes(path / STATE)
    except ImportError:
        raise
    except Exception as error:
        raise Damaged(f"orbax cannot read it: {error}") from error


def _is_good(path: Path) -> bool:
    with contextlib.suppress(Damaged):
        check_files(path, read_manifest(path))
        return True
    return False


@functools.cache
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("taynode", "jax", "jaxlib", "numpy", "orbax-checkpoint", "tensorstore"):
        # A checkout on the path is not known to be of any version.
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
