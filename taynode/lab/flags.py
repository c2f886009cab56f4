"""The flags of `taynode train`, the settings that each of them changes, and settings by name.

All other settings are `--set.NAME`. This module does not import JAX.
"""

from collections.abc import Mapping
from typing import Any

from .files import Json


FLAGS: dict[str, tuple[str, ...]] = {
    "regularizer": ("regularizer.name",),
    "weight": ("regularizer.weight",),
    "budget": ("regularizer.budget",),
    "within": ("regularizer.within",),
    "quadrature": ("regularizer.quadrature",),
    "seed": ("seed",),
    "epochs": ("epochs",),
    "solver": ("training.solver",),
    "adjoint": ("training.adjoint",),
    "steps": ("training.steps",),
    "rtol": ("training.rtol", "evaluation.rtol"),
    "atol": ("training.atol", "evaluation.atol"),
    "weight_decay": ("optimizer.weight_decay",),
    "learning_rate": ("optimizer.learning_rate",),
}


def tolerances(rtol: float | None, atol: float | None) -> dict[str, float]:
    """The tolerances that are given. A relative tolerance alone is also the absolute one."""
    given = {"rtol": rtol, "atol": rtol if atol is None else atol}
    return {name: value for name, value in given.items() if value is not None}


def settings_of(flags: Mapping[str, Any]) -> Json:
    """The settings that some flags change, as nested dictionaries. `None` changes nothing."""
    flags = {**flags, **tolerances(flags.get("rtol"), flags.get("atol"))}
    given = {flag: value for flag, value in flags.items() if value is not None}
    return nested({path: value for flag, value in given.items() for path in FLAGS[flag]})


def nested(settings: Mapping[str, Any]) -> Json:
    """Settings by their dotted names, such as `regularizer.weight`, as nested dictionaries."""
    out: Json = {}
    for path, value in settings.items():
        *parts, name = path.split(".")
        inner = out
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return out


def merged(base: Json, *changes: Json) -> Json:
    """Merge nested dictionaries; later dictionaries override earlier ones."""
    out = dict(base)
    for change in changes:
        for name, value in change.items():
            old = out.get(name)
            if isinstance(old, dict) and isinstance(value, dict):
                value = merged(old, value)
            out[name] = value
    return out
