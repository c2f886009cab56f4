"""Options of commands, made from the configuration's own classes."""

import dataclasses
import tomllib
import types
import typing
from pathlib import Path
from typing import Any

from ..config import ConfigError, from_dict, to_dict, TrainConfig


def _optional(kind: Any) -> Any:
    """A class like a configuration's, in which everything may be left out."""
    hints = typing.get_type_hints(kind)
    fields = []
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            inner = _optional(hint)
            fields.append((field.name, inner, dataclasses.field(default_factory=inner)))
        else:
            optional = hint if isinstance(hint, types.UnionType) else hint | None
            fields.append((field.name, optional, dataclasses.field(default=None)))
    made = dataclasses.make_dataclass(f"{kind.__name__}Options", fields, frozen=True)
    # Otherwise that of Python's own `types`, whose classes cyclopts leaves alone.
    made.__module__ = __name__
    return made


TrainOptions: Any = _optional(TrainConfig)


def given(options: Any) -> dict[str, Any]:
    """What was given of some options, as nested dictionaries."""
    out = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            value = given(value) or None
        if value is not None:
            out[field.name] = value
    return out


def merged(base: dict[str, Any], *changes: dict[str, Any]) -> dict[str, Any]:
    """Nested dictionaries, later ones first."""
    out = dict(base)
    for change in changes:
        for name, value in change.items():
            old = out.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                value = merged(old, value)
            out[name] = value
    return out


def read_toml(file: Path | None) -> dict[str, Any]:
    """A configuration file."""
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise ConfigError(f"`config` {file}: there is no such file.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"`config` {file} is not valid TOML: {error}.") from None


def with_changes(defaults: TrainConfig, *changes: dict[str, Any]) -> TrainConfig:
    """A configuration, changed by nested dictionaries."""
    return from_dict(TrainConfig, merged(to_dict(defaults), *changes))
