"""The parameters of a trained model, with the settings of its run, in one file.

The format is that of checkpoints, see `taynode.lab.training.state_file`. The file holds numbers
alone: reading it runs no code.
"""

from pathlib import Path
from typing import NamedTuple, TypeVar

import equinox as eqx

from ..config import ConfigError, from_dict, to_dict, TrainConfig
from ..files import drafted, Json
from .leaves import unpack
from .state_file import Damaged, decode, encode


Model = TypeVar("Model", bound=eqx.Module)


class Header(NamedTuple):
    """The settings of the run, and the step that the parameters are from."""

    config: TrainConfig
    step: int


def write_parameters(file: Path, model: eqx.Module, config: TrainConfig, step: int) -> None:
    """Write a file at once or not at all."""
    with drafted(file) as draft:
        draft.write_bytes(encode({"config": to_dict(config), "step": step}, model))


def read_header(file: Path) -> Header:
    """The settings and the step of a file."""
    header, _ = _read(file)
    return Header(from_dict(TrainConfig, header["config"]), header["step"])


def read_parameters(file: Path, template: Model) -> tuple[Model, int]:
    """The model of a file, and its step. The template has the same structure, shapes and dtypes."""
    header, data = _read(file)
    try:
        return unpack(template, header["leaves"], data), header["step"]
    except ValueError as error:
        raise ConfigError(f"{file} does not fit the model of the task: {error}.") from None


def _read(file: Path) -> tuple[Json, memoryview]:
    try:
        return decode(file.read_bytes())
    except Damaged as error:
        raise ConfigError(f"{file} is damaged or is not a file of parameters: {error}.") from None
