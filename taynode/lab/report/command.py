"""The command that makes a run again."""

import shlex
from typing import Any

from ..config import to_dict
from .formats import is_number, setting
from .groups import flatten


# What `taynode train` has a flag of its own for; everything else is `--set.NAME`.
FLAGS = {
    "seed": "seed",
    "epochs": "epochs",
    "regularizer.name": "regularizer",
    "regularizer.weight": "weight",
    "regularizer.quadrature": "quadrature",
    "training.solver": "solver",
    "training.adjoint": "adjoint",
    "training.steps": "steps",
    "optimizer.weight_decay": "weight-decay",
    "optimizer.learning_rate": "learning-rate",
}


def reproduce(config: dict[str, Any]) -> str:
    """The command, with the settings that are not those of the task; empty if nobody knows."""
    task, scale = config.get("task"), config.get("scale", "laptop")
    if not isinstance(task, str):
        return ""
    values = {
        name: value for name, value in flatten(config).items() if name not in ("task", "scale")
    }
    defaults = _defaults(task, scale)
    changed = {
        name: value
        for name, value in values.items()
        if name not in defaults or _plain(defaults[name]) != _plain(value)
    }
    changed |= {"seed": values["seed"]} if "seed" in values else {}
    words = ["taynode", "train", task, "--scale", setting(scale)]
    # These two flags hold for training and evaluation alike.
    for name in ("rtol", "atol"):
        both = [f"{part}.{name}" for part in ("training", "evaluation")]
        if all(key in changed for key in both) and len({str(changed[key]) for key in both}) == 1:
            words += [f"--{name}", setting(changed[both[0]])]
            changed = {key: value for key, value in changed.items() if key not in both}
    for name, value in sorted(changed.items(), key=_rank):
        words += _flag(name, value)
    return shlex.join(words)


def _flag(name: str, value: Any) -> list[str]:
    """A setting as words; nothing is left unset by a flag, so `None` has none."""
    if value is None:
        return []
    flag = f"--{FLAGS[name]}" if name in FLAGS else f"--set.{name.replace('_', '-')}"
    if isinstance(value, bool) and name not in FLAGS:
        head, _, tail = flag.rpartition(".")
        return [flag if value else f"{head}.no-{tail}"]
    if isinstance(value, list | tuple):
        return [word for item in value for word in (flag, setting(item))]
    # All digits, since it is to be the same run.
    return [flag, repr(value) if is_number(value) else setting(value)]


def _rank(item: tuple[str, Any]) -> tuple[int, str]:
    order = ["regularizer.name", "regularizer.weight", "regularizer.quadrature", "seed"]
    return (order.index(item[0]) if item[0] in order else len(order), item[0])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _defaults(task: str, scale: Any) -> dict[str, Any]:
    """The settings of a task of ours. A user's module is not run just to print a command."""
    from ..tasks.base import find_task, TASKS

    if task not in TASKS:
        return {}
    try:
        return flatten(to_dict(find_task(task).defaults(scale)))
    except Exception:
        # A scale or a package that is not there: then all settings are told.
        return {}
