"""The command that makes a run again."""

import shlex

from ..config import to_dict
from ..files import Json
from ..flags import FLAGS
from .formats import is_number, setting
from .groups import flatten


# The flags that set a single setting, and those that set several.
OWN_FLAGS = {paths[0]: flag.replace("_", "-") for flag, paths in FLAGS.items() if len(paths) == 1}
SHARED_FLAGS = {flag: paths for flag, paths in FLAGS.items() if len(paths) > 1}


def reproduce(config: Json) -> str:
    """The command, with all settings that differ from those of the task; empty without a task."""
    task, scale = config.get("task"), str(config.get("scale", "laptop"))
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
    shared = [path for paths in SHARED_FLAGS.values() for path in paths]
    agree = all(
        len({str(values.get(path)) for path in paths}) == 1 for paths in SHARED_FLAGS.values()
    )
    if agree and any(path in changed for path in shared):
        # All shared flags are needed: `--rtol` alone would set the absolute tolerance, too.
        for flag, paths in SHARED_FLAGS.items():
            words += _flag_words(f"--{flag}", values.get(paths[0]))
        changed = {path: value for path, value in changed.items() if path not in shared}
    for name, value in sorted(changed.items(), key=_rank):
        words += _flag(name, value)
    return shlex.join(words)


def _flag(name: str, value: object) -> list[str]:
    """The words that set a setting."""
    flag = f"--{OWN_FLAGS[name]}" if name in OWN_FLAGS else f"--set.{name.replace('_', '-')}"
    if isinstance(value, bool) and name not in OWN_FLAGS:
        head, _, tail = flag.rpartition(".")
        return [flag if value else f"{head}.no-{tail}"]
    if isinstance(value, list | tuple):
        return [word for item in value for word in (flag, setting(item))]
    return _flag_words(flag, value)


def _flag_words(flag: str, value: object) -> list[str]:
    """A flag and its value, with all digits. No flag sets a setting to `None`."""
    if value is None:
        return []
    return [flag, repr(value) if is_number(value) else setting(value)]


def _rank(item: tuple[str, object]) -> tuple[int, str]:
    order = ["regularizer.name", "regularizer.weight", "regularizer.quadrature", "seed"]
    return (order.index(item[0]) if item[0] in order else len(order), item[0])


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _defaults(task: str, scale: str) -> Json:
    """The settings of a built-in task. The module of another task is not run to print a command."""
    from ..tasks.names import find_task, TASKS

    if task not in TASKS:
        return {}
    try:
        return flatten(to_dict(find_task(task).defaults(scale)))
    except Exception:
        # The scale is unknown or a package is missing, so all settings are printed.
        return {}
