"""Checkpoints that survive a kill, a full disk and flipped bits.

A checkpoint is written to a hidden directory, read back, and renamed when all of it is on disk. So
a kill leaves the old ones, or the old ones and a whole new one.
"""

import contextlib
import errno
import fcntl
import functools
import importlib.metadata
import os
import platform
import re
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .leaves import mismatches, pack, same, Table, unpack
from .manifest import (
    check_files,
    Damaged,
    differences,
    list_files,
    plain,
    read_manifest,
    sync,
    write_manifest,
)
from .storage import read_arrays, write_arrays


STATE, UNFINISHED, LOCK = "state", ".unfinished_", ".lock"
NAME = re.compile(r"step_(\d+)(?:\.(\d+))?")


class CheckpointError(Exception):
    """A checkpoint cannot be written, or none can be used."""


class CheckpointWarning(UserWarning):
    """A checkpoint was passed over."""


class Restored(NamedTuple):
    """What was saved, and when."""

    step: int
    state: Any
    info: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run in a directory of their own.

    **Arguments:**

    - `directory`: where they are; made by the first save.
    - `keep`: how many to keep, at least 1. Damaged ones do not count.
    - `fingerprint`: a hash of the configuration. Checkpoints of another one are refused.
    - `config`: the configuration, to tell what differs from that of a refused checkpoint.
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
        # Whoever only reads may be unable to write; and left-overs in use are none.
        with contextlib.suppress(OSError, CheckpointError):
            if any(self.directory.glob(f"{UNFINISHED}*")):
                with self._lock():
                    self._sweep()

    def steps(self) -> list[int]:
        """The steps of all undamaged checkpoints, the oldest first. Reads all files."""
        good = {step for step, _, path in self._entries() if _problem(path) is None}
        return sorted(good)

    def save(self, step: int, state: Any, *, info: dict[str, Any] | None = None) -> None:
        """Save a state: it is safe on disk when this returns.

        **Arguments:**

        - `step`: how far the run is; not before that of an earlier checkpoint.
        - `state`: any pytree. Arrays and Python numbers are stored; other leaves, such as
            functions, come from the template of `restore`.
        - `info`: a dictionary of anything that JSON can hold.
        """
        if step < 0:
            raise ValueError(f"`step` must be at least 0, got {step}.")
        table, arrays = pack(state)
        # Never empty: orbax does not store nothing.
        arrays[STATE] = _marker(step)
        info = plain(info or {})
        content = {
            "step": step,
            "fingerprint": self.fingerprint,
            "config": self.config if self.config is not None else info.get("config"),
            "info": info,
            "versions": _versions(),
            "leaves": table,
        }
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with self._lock():
                self._sweep()
                attempt = self._next_attempt(step)
                name = f"step_{step:09d}" + (f".{attempt}" if attempt else "")
                self._write(name, content, arrays)
                self._prune(self.directory / name)
        except (OSError, Damaged) as error:
            raise CheckpointError(self._explain(step, error)) from error

    def restore(self, template: Any) -> Restored | None:
        """The newest undamaged checkpoint; `None` if there is none at all.

        **Arguments:**

        - `template`: a state of the same structure, shapes and dtypes; arrays may be
            `jax.ShapeDtypeStruct`. Leaves that are no data are taken from it.
        """
        problems = []
        for _, _, path in self._entries():
            try:
                manifest = read_manifest(path)
                self._refuse_other_run(path, manifest)
                arrays = _load(path, manifest)
            except Damaged as error:
                problems.append(f"`{path}`: {error}")
                continue
            for problem in problems:
                warnings.warn(f"Skipped a checkpoint, {problem}.", CheckpointWarning, stacklevel=2)
            table: Table = manifest["leaves"]
            if wrong := mismatches(template, table):
                more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
                raise CheckpointError(
                    f"The state in `{path}` does not fit the template: "
                    f"{'; '.join(wrong[:5])}{more}."
                )
            return Restored(manifest["step"], unpack(template, table, arrays), manifest["info"])
        if problems:
            listed = "".join(f"\n- {problem}" for problem in problems)
            raise CheckpointError(
                f"None of the checkpoints can be used:{listed}\nBring one back from a copy, or "
                f"move `{self.directory}` out of the way to start anew."
            )
        return None

    def _entries(self) -> list[tuple[int, int, Path]]:
        """Step, attempt and path of all checkpoints, damaged or not, the newest first."""
        try:
            paths = list(self.directory.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointError(f"`{self.directory}` cannot be read: {error.strerror}.") from error
        names = [(NAME.fullmatch(path.name), path) for path in paths]
        found = [(int(name[1]), int(name[2] or 0), path) for name, path in names if name]
        return sorted(found, reverse=True)

    def _next_attempt(self, step: int) -> int:
        """Which attempt at a step this is, if it may be saved here at all.

        Names are never used twice, since a directory cannot be replaced in one go.
        """
        attempts = [0]
        for other_step, attempt, path in self._entries():
            if other_step == step:
                attempts.append(attempt + 1)
            with contextlib.suppress(Damaged):
                manifest = read_manifest(path)
                self._refuse_other_run(path, manifest)
                if other_step > step:
                    check_files(path, manifest)
                    raise CheckpointError(
                        f"Step {step} is before step {other_step}, which is in "
                        f"`{self.directory}` already. Restore it to go on from there, or use "
                        "another directory."
                    )
        return max(attempts)

    def _write(self, name: str, content: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Write and verify a checkpoint under another name, then rename it."""
        unfinished = self.directory / f"{UNFINISHED}{name}"
        try:
            unfinished.mkdir()
            write_arrays(unfinished / STATE, arrays)
            write_manifest(unfinished, {**content, "files": list_files(unfinished)})
            if not same(arrays, _load(unfinished, read_manifest(unfinished), step=content["step"])):
                raise Damaged("what was read back is not what was written")
            os.rename(unfinished, self.directory / name)
            sync(self.directory)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
