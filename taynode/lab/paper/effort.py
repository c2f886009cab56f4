"""The cost of runs, and the versions they were made with."""

from collections.abc import Iterable

from ..sweep.results import Result
from .study import Record


# The parts of an environment that numbers and times depend on.
VERSIONS = ("python", "jax", "diffrax", "equinox", "optax")
SECONDS = ("train_seconds", "compile_seconds")


def effort_of(results: Iterable[Result]) -> Record:
    """The number of runs, their hours on a core, and all versions they were made with."""
    unique = {result["identity"]: result for result in results}.values()
    seconds = [result["row"].get(name, 0.0) for result in unique for name in SECONDS]
    versions = {
        name: sorted({v for result in unique if (v := result.get("environment", {}).get(name))})
        for name in VERSIONS
    }
    return {"runs": len(unique), "hours": round(sum(seconds) / 3600, 2), "versions": versions}


def in_words(effort: Record | None) -> str:
    """The effort in words; empty if there are no runs."""
    if not effort or not effort["runs"]:
        return ""
    many = "" if effort["runs"] == 1 else "s"
    used = [f"{name} {' and '.join(found)}" for name, found in effort["versions"].items() if found]
    return f"{effort['runs']} run{many}, {effort['hours']:g} h of one core; {', '.join(used)}"
