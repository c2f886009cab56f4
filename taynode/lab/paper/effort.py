"""What runs have cost, and what they were done with."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..sweep.table import Table


# Of what an environment says, what numbers and times depend on.
VERSIONS = ("python", "jax", "diffrax", "equinox", "optax")
SECONDS = ("train_seconds", "compile_seconds")


def effort_of(results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """How many runs, the hours they took of a core, and versions, of which there may be several."""
    unique = {result["identity"]: result for result in results}.values()
    seconds = [result["row"].get(name, 0.0) for result in unique for name in SECONDS]
    versions = {
        name: sorted({v for result in unique if (v := result.get("environment", {}).get(name))})
        for name in VERSIONS
    }
    return {"runs": len(unique), "hours": round(sum(seconds) / 3600, 2), "versions": versions}


def effort_under(root: Path) -> dict[str, Any]:
    """Of all runs under a root, from their table."""
    return effort_of(Table(root / "runs").results().values())


def in_words(effort: dict[str, Any] | None) -> str:
    """Nothing if there are no runs."""
    if not effort or not effort["runs"]:
        return ""
    many = "" if effort["runs"] == 1 else "s"
    used = [f"{name} {' and '.join(found)}" for name, found in effort["versions"].items() if found]
    return f"{effort['runs']} run{many}, {effort['hours']:g} h of one core; {', '.join(used)}"
