"""The flags of `taynode train`, and the settings that each of them stands for. No JAX here.

All other settings are `--set.NAME`.
"""

from collections.abc import Mapping
from typing import Any


FLAGS: dict[str, tuple[str, ...]] = {
    "regularizer": ("regularizer.name",),
    "weight": ("regularizer.weight",),
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
    """The tolerances that were given. A relative tolerance alone is the absolute one, too."""
    given = {"rtol": rtol, "atol": rtol if atol is None else atol}
    return {name: value for name, value in given.items() if value is not None}


def settings_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that some flags stand for, as nested dictionaries. `None` sets nothing."""
    flags = {**flags, **tolerances(flags.get("rtol"), flags.get("atol"))}
    settings: dict[str, Any] = {}
    for flag, value in flags.items():
        for path in FLAGS[flag] if value is not None else ():
            *parts, name = path.split(".")
            inner = settings
            for part in parts:
                inner = inner.setdefault(part, {})
            inner[name] = value
    return settings
