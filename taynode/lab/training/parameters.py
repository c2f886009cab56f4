"""The parameters of a trained model, with the settings of its run, in one file.

The first line is JSON: the settings, the step, and the SHA-256 of all that follows. Equinox's
serialisation of the model's arrays follows. It holds numbers alone: reading it runs no code.
"""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx

from ..config import ConfigError, from_dict, to_dict, TrainConfig
from .records import drafted, naming


class Header(NamedTuple):
    """What the first line says."""

    config: TrainConfig
    step: int


def write_parameters(file: Path, model: Any, config: TrainConfig, step: int) -> None:
    """Write a file at once or not at all."""
    stream = io.BytesIO()
    eqx.tree_serialise_leaves(stream, model)
    arrays = stream.getvalue()
    header = {"config": to_dict(config), "step": step, "sha256": _digest(arrays)}
    content = json.dumps(header).encode() + b"\n" + arrays
    with naming(file), drafted(file) as draft, open(draft, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def read_header(file: Path) -> Header:
    """The settings and the step of a file, whose arrays are not read."""
    with open(file, "rb") as stream:
        header, _ = _parse(file, stream.readline())
    return header


def read_parameters(file: Path, template: Any) -> tuple[Any, int]:
    """The model of a file, and its step; the template has its structure, shapes and dtypes."""
    with open(file, "rb") as stream:
        header, expected = _parse(file, stream.readline())
        arrays = stream.read()
    if _digest(arrays) != expected:
        raise ConfigError(
            f"{file} is damaged: its SHA-256 is not the one that it was written with."
        )
    try:
        return eqx.tree_deserialise_leaves(io.BytesIO(arrays), template), header.step
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"{file} does not fit the model of the task: {error}.") from error


def _parse(file: Path, line: bytes) -> tuple[Header, str]:
    try:
        header = json.loads(line)
        config = from_dict(TrainConfig, header["config"])
        return Header(config, int(header["step"])), str(header["sha256"])
    except ConfigError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file} is not a file of parameters: {error}.") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
