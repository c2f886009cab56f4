"""Public names that are imported when they are first used.

So `import taynode` takes no time, and `taynode --help` does not wait for JAX. The public names are
listed once, in the `__init__.pyi` next to an `__init__.py`, where type checkers find them, too.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def public_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose `__file__` is given."""
    homes = {
        alias.name: "." * node.level + (node.module or "")
        for node in ast.parse(Path(file).with_suffix(".pyi").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in homes:
            # With these, Python adds the name that was meant.
            found = {"name": name, "obj": sys.modules[package]}
            raise AttributeError(f"module {package!r} has no attribute {name!r}", **found)
        home = homes[name]
        if home == ".":
            return importlib.import_module(f".{name}", package)
        return getattr(importlib.import_module(home, package), name)

    return load, lambda: sorted(homes)
