"""Signatures of classes whose `__init__` is made from their fields, which griffe cannot read."""

import importlib
import inspect
import re
from typing import Any

import griffe

from website.outside import ROOT


NAME = re.compile(r"^::: (\S+)", re.M)


def reference() -> dict[str, Any]:
    """The classes of the API reference, by the places where they are defined."""
    found = {}
    for page in (ROOT / "docs" / "api").glob("*.md"):
        for path in NAME.findall(page.read_text()):
            module, _, name = path.rpartition(".")
            thing = getattr(importlib.import_module(module), name)
            if inspect.isclass(thing):
                found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


def shown(default: Any) -> str:
    """A default value in short."""
    if callable(default) and hasattr(default, "__name__"):
        return "..." if default.__name__.startswith(("_", "<")) else default.__name__
    text = repr(default)
    return text if len(text) <= 24 else f"{type(default).__name__}(...)"


class Signatures(griffe.Extension):
    """Adds the `__init__` of such classes."""

    def __init__(self) -> None:
        self.classes = reference()

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Add an `__init__` with the parameters of the class, if it has none of its own."""
        del kwargs
        kind = self.classes.get(cls.path)
        if kind is None or "__init__" in cls.members:
            return
        try:
            signature = inspect.signature(kind)
        except ValueError:
            return
        parameters = [
            griffe.Parameter(
                parameter.name,
                kind=griffe.ParameterKind(parameter.kind.description),
                default=None
                if parameter.default is inspect.Parameter.empty
                else shown(parameter.default),
            )
            for parameter in signature.parameters.values()
        ]
        made = griffe.Function("__init__", parameters=griffe.Parameters(*parameters))
        cls.set_member("__init__", made)
