"""Options of commands, made from the configuration's own classes."""

import dataclasses
import inspect
import re
import tomllib
import types
import typing
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ..config import ConfigError, TrainConfig
from ..files import Json
from ..flags import FLAGS


# Settings with a flag of their own, which is the one that the help shows.
_FLAGGED = {paths[0] for paths in FLAGS.values() if len(paths) == 1}


def _optional(kind: type, path: str = "") -> Any:
    """A class with the fields of a configuration, in which every field may be left out."""
    hints, helps = typing.get_type_hints(kind), descriptions(kind)
    fields = []
    for field in dataclasses.fields(kind):
        # The task and its scale choose the defaults of all other settings.
        if field.name in ("task", "scale"):
            continue
        hint = hints[field.name]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            inner = _optional(hint, f"{path}{field.name}.")
            fields.append((field.name, inner, dataclasses.field(default_factory=inner)))
        else:
            optional = hint if isinstance(hint, types.UnionType) else hint | None
            words = Parameter(help=helps.get(field.name), show=path + field.name not in _FLAGGED)
            described = Annotated[optional, words]
            fields.append((field.name, described, dataclasses.field(default=None)))
    made = dataclasses.make_dataclass(f"{kind.__name__}Options", fields, frozen=True)
    # By default it is `types`, and cyclopts does not look into classes of built-in modules.
    made.__module__ = __name__
    return made


def described(path: str) -> Parameter:
    """A flag with the description of a setting, such as `regularizer.weight`."""
    *parts, name = path.split(".")
    kind = TrainConfig
    for part in parts:
        kind = typing.get_type_hints(kind)[part]
    return Parameter(help=descriptions(kind).get(name))


def descriptions(kind: type) -> dict[str, str]:
    """The description of each field, from the list in the docstring of a configuration."""
    # Python 3.13 removes the indentation by itself, and with `-OO` there is no docstring.
    text = inspect.cleandoc(kind.__doc__ or "")
    entries = re.findall(r"- `(\w+)`: (.*?)(?=\n- |\Z)", text, re.DOTALL)
    sentences = {name: " ".join(text.split()) for name, text in entries}
    return {name: text[0].upper() + text[1:] for name, text in sentences.items()}


TrainOptions: Any = _optional(TrainConfig)


def given(options: Any) -> Json:
    """The options that were given, as nested dictionaries."""
    out = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            value = given(value) or None
        if value is not None:
            out[field.name] = value
    return out


def read_toml(file: Path | None) -> Json:
    """The settings in a TOML file; none without a file."""
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise ConfigError(f"`config` {file}: there is no such file.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"`config` {file} is not valid TOML: {error}.") from None
