"""Points and states on disk, such that a killed process loses no finished point."""

import dataclasses
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import PyTree

from .front import Point
from .plan import Phase
from .training import TrainState


STATE = "state.eqx"


class Saved(NamedTuple):
    """What was read: the points, the phase that was under way, its state, and the steps made."""

    points: list[Point]
    scale: float
    phase: Phase
    step: int
    state: TrainState


class Store:
    """A directory with a file for each point, and one for the state of the training.

    A file is a line of JSON with the SHA-256 of the rest, which are arrays in equinox's format. It
    gets its name once it is on disk.

    **Arguments:**

    - `directory`: created if it is missing.
    - `settings`: what was asked for. Files of other settings are refused.
    """

    def __init__(self, directory: str | os.PathLike[str], settings: dict[str, Any]):
        self.directory = Path(directory)
        # As it is read from a file.
        self.settings = json.loads(json.dumps(settings))
        self.directory.mkdir(parents=True, exist_ok=True)

    def save_point(self, index: int, point: Point) -> None:
        """Write a point."""
        fields = {f.name: getattr(point, f.name) for f in dataclasses.fields(point)}
        model = fields.pop("model")
        self._write(_name(index), {"settings": self.settings, "point": fields}, model)

    def save_state(
        self, num_points: int, scale: float, phase: Phase, step: int, state: TrainState
    ) -> None:
        """Write the state of the training, whose points must have been written."""
        header = {"settings": self.settings, "num_points": num_points, "scale": scale}
        self._write(STATE, {**header, "phase": phase._asdict(), "step": step}, state)

    def load(self, state: TrainState) -> Saved | None:
        """What was saved, or `None`. `state` has the right structure and shapes."""
        if not (self.directory / STATE).exists():
            return None
        header, state = self._read(STATE, state)
        points = []
        for index in range(header["num_points"]):
            fields, model = self._read(_name(index), state.model)
            points.append(Point(**fields["point"], model=model))
        return Saved(points, header["scale"], Phase(**header["phase"]), header["step"], state)

    def _write(self, name: str, header: dict[str, Any], tree: PyTree) -> None:
        content = _as_bytes(tree)
        header = {"sha256": hashlib.sha256(content).hexdigest(), **header}
        draft = self.directory / f".{name}.tmp"
        with open(draft, "wb") as file:
            file.write(json.dumps(header).encode() + b"\n" + content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.directory / name)

    def _read(self, name: str, template: PyTree) -> tuple[dict[str, Any], PyTree]:
        file = self.directory / name
        try:
            line, _, content = file.read_bytes().partition(b"\n")
            header = json.loads(line)
            if header["sha256"] != hashlib.sha256(content).hexdigest():
                raise ValueError("the checksum is wrong")
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(
                f"`{file}` is damaged or missing: {error}. Restore it from a copy, or pass another "
                "`path` to begin anew. The other points in this directory are untouched."
            ) from error
        for setting, value in header["settings"].items():
            if value != self.settings[setting]:
                raise ValueError(
                    f"`{file}` belongs to a call with `{setting}={value}`, got "
                    f"`{self.settings[setting]}`. Pass the same, or another `path`."
                )
        arrays, rest = eqx.partition(template, eqx.is_array)
        return header, eqx.combine(eqx.tree_deserialise_leaves(io.BytesIO(content), arrays), rest)


def _name(index: int) -> str:
    return f"point_{index:03d}.eqx"


def _as_bytes(tree: PyTree) -> bytes:
    """The arrays of a pytree in equinox's format."""
    stream = io.BytesIO()
    eqx.tree_serialise_leaves(stream, eqx.filter(tree, eqx.is_array))
    return stream.getvalue()


def digest(tree: PyTree) -> str:
    """A short name for the arrays of a pytree, by their values."""
    return hashlib.sha256(_as_bytes(tree)).hexdigest()[:16]
