"""Checkpoints that survive kills, full disks and flipped bits."""

import itertools
import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from jaxtyping import PyTree

from ..files import drafted, drafts, exclusive, Json
from .leaves import unpack
from .state_file import Damaged, decode, encode


# Checkpoints of format 1 have no suffix. They are found and refused, because a run whose
# checkpoints are overlooked would begin anew.
NAME = re.compile(r"step_(\d+)(\.ckpt)?")

# Checkpoints that cannot be used: each in words, with its error.
Problems: TypeAlias = dict[str, OSError | Damaged]


class CheckpointError(Exception):
    """A checkpoint cannot be written, or none can be used."""


class SaveError(CheckpointError):
    """A checkpoint cannot be written. Earlier checkpoints are untouched."""


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was skipped, or an old one could not be deleted."""


class Restored(NamedTuple):
    """The contents of a checkpoint."""

    step: int
    state: PyTree
    info: Json


class Checkpoints:
    """The checkpoints of one run, in a directory of their own.

    Each checkpoint is one file. It gets its name once it is complete and on disk, and it is used
    only if its SHA-256 is right.

    **Arguments:**

    - `directory`: created by the first save.
    - `keep`: the number of checkpoints to keep, at least 1. Damaged ones do not count.
    - `fingerprint`: a hash of the configuration. Checkpoints with another one are refused.
    - `config`: the configuration as plain data, from which an error names the settings that
        differ.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep: int = 3,
        fingerprint: str,
        config: Json | None = None,
    ):
        if keep < 1:
            raise ValueError(f"`keep` must be at least 1, got {keep}.")
        self.directory = Path(directory)
        self.keep, self.fingerprint = keep, fingerprint
        # As `restore` reads it from a file, where tuples have become lists.
        self.config = json.loads(json.dumps(config or {}))

    def steps(self) -> list[int]:
        """The steps of all undamaged checkpoints, in ascending order. Reads every file."""
        return self._newest()[::-1]

    def save(self, step: int, state: PyTree, *, info: Json | None = None) -> None:
        """Save a state. When this returns, the state is on disk and has been read back.

        **Arguments:**

        - `step`: the number of steps made so far; not less than that of any undamaged checkpoint.
        - `state`: a pytree. Arrays, keys and Python numbers are stored. Other leaves, such as
            functions, come from the template of `restore`.
        - `info`: a dictionary that JSON can hold.
        """
        if step < 0:
            raise ValueError(f"`step` must be at least 0, got {step}.")
        header = {
            "step": step,
            "fingerprint": self.fingerprint,
            "config": self.config,
            "info": info or {},
        }
        content = encode(header, state)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            # Where there are no locks, checksums show whether two processes disturbed each other.
            with exclusive(self.directory / ".lock", wait=False, needed=False):
                for draft in drafts(self.directory):
                    draft.unlink()
                newest = self._newest(1)
                if newest and newest[0] > step:
                    raise CheckpointError(
                        f"Step {step} is before step {newest[0]}, which is in `{self.directory}` "
                        "already. Restore that to continue from there, or use another directory."
                    )
                with drafted(self.directory / f"step_{step:09d}.ckpt") as draft:
                    draft.write_bytes(content)
                    if draft.read_bytes() != content:
                        raise Damaged("the file was read back with other contents")
                self._prune()
        except BlockingIOError:
            raise SaveError(f"Another process is saving to `{self.directory}`.") from None
        except (OSError, Damaged) as error:
            raise SaveError(
                f"The checkpoint of step {step} could not be written to `{self.directory}`: "
                f"{_reason(error)}. Earlier checkpoints are untouched."
            ) from error

    def restore(self, template: PyTree, *, part: str = "") -> Restored | None:
        """The newest undamaged checkpoint, or `None` if there is no checkpoint at all.

        **Arguments:**

        - `template`: a pytree of the same structure, shapes and dtypes. Its arrays may be
            `jax.ShapeDtypeStruct`s.
        - `part`: restore only the leaves below this path, such as `".arrays"` or `"[0]['x']"`.
            `template` is then a template of that part.

        Raises a `CheckpointError` if no checkpoint can be used. Its cause is an `OSError` if a file
        could not be read: that file may be undamaged.
        """
        problems: Problems = {}
        for header, data in self._undamaged(problems):
            for problem in problems:
                warnings.warn(f"Skipped checkpoint {problem}.", CheckpointWarning, stacklevel=2)
            try:
                state = unpack(template, header["leaves"], data, part)
            except ValueError as error:
                raise CheckpointError(
                    f"The checkpoint of step {header['step']} in `{self.directory}` does not fit "
                    f"the template: {error}."
                ) from None
            return Restored(header["step"], state, header["info"])
        if problems:
            listed = "\n".join(f"- {problem}" for problem in problems)
            unread = next((e for e in problems.values() if isinstance(e, OSError)), None)
            raise CheckpointError(
                f"None of the checkpoints can be used:\n{listed}\nRestore one from a backup, or "
                f"move `{self.directory}` away to start from the beginning."
            ) from unread
        return None

    def _files(self) -> list[tuple[int, Path]]:
        """Steps and files of all checkpoints, the newest first."""
        try:
            matches = [(NAME.fullmatch(file.name), file) for file in self.directory.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointError(f"`{self.directory}` cannot be read: {error}.") from error
        return sorted([(int(match[1]), file) for match, file in matches if match], reverse=True)

    def _newest(self, count: int | None = None) -> list[int]:
        """The steps of the newest undamaged checkpoints, in descending order."""
        return [header["step"] for header, _ in itertools.islice(self._undamaged({}), count)]

    def _undamaged(self, problems: Problems) -> Iterator[tuple[Json, memoryview]]:
        """Header and data of all undamaged checkpoints, the newest first.

        The errors of the others are added to `problems`. A checkpoint of another configuration is
        an error.
        """
        for _, file in self._files():
            try:
                header, data = decode(file.read_bytes())
            except (OSError, Damaged) as error:
                problems[f"`{file}`: {_reason(error)}"] = error
                continue
            if header["fingerprint"] != self.fingerprint:
                raise CheckpointError(
                    f"`{file}` belongs to another configuration: its fingerprint is "
                    f"`{header['fingerprint']}` instead of `{self.fingerprint}`. "
                    f"{'; '.join(_differences(self.config, header['config']))}. "
                    "Use that configuration, or another directory."
                )
            yield header, data

    def _prune(self) -> None:
        """Delete all checkpoints before the newest `keep` undamaged ones."""
        newest = self._newest(self.keep)
        if len(newest) < self.keep:
            return
        try:
            for step, file in self._files():
                if step < newest[-1]:
                    file.unlink()
        except OSError as error:
            warnings.warn(
                f"Old checkpoints in `{self.directory}` could not be deleted: {error}.",
                CheckpointWarning,
                stacklevel=3,
            )


def _reason(error: OSError | Damaged) -> str:
    return getattr(error, "strerror", None) or str(error)


def _differences(here: object, there: object, name: str = "") -> Iterator[str]:
    """The settings in which two configurations differ, in words."""
    if isinstance(here, dict) and isinstance(there, dict):
        for key in dict.fromkeys([*here, *there]):
            inner = f"{name}.{key}" if name else str(key)
            yield from _differences(here.get(key, "(unset)"), there.get(key, "(unset)"), inner)
    elif here != there:
        yield f"`{name}` is {here!r} here and {there!r} there"
