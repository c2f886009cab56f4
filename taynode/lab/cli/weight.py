"""The options of `taynode train` that decide how strongly to regularize."""

import math
from pathlib import Path
from typing import Any

from ..config import ConfigError, NO_REGULARIZER
from ..training.records import RunDirectory


# A budget needs some regularizer.
USUAL = "r3"
PRICED = "nfe"


def weight_flags(flags: dict[str, Any], price: float | None) -> dict[str, Any]:
    """The flags that a budget, an allowed loss or a price implies."""
    weight, regularizer = flags["weight"], flags["regularizer"]
    if price is not None:
        if weight is not None or regularizer not in (None, PRICED):
            raise ConfigError(
                "`price` is the weight of the regularizer nfe: leave `--weight` out, and any other "
                "`--regularizer`."
            )
        if not 0 <= price < math.inf:
            raise ConfigError(f"`price` must be finite and not negative, got {price:g}.")
        return {"regularizer": PRICED, "weight": price}
    if flags["budget"] is None and flags["within"] is None:
        return {}
    if regularizer == NO_REGULARIZER:
        raise ConfigError(
            f"`regularizer` {NO_REGULARIZER} cannot keep a budget; omit `--regularizer` to use "
            f"{USUAL}."
        )
    # The weight that a task has by default makes way.
    return {"regularizer": regularizer or USUAL, "weight": 0.0 if weight is None else weight}


def reference_losses(run: Path, task: str) -> list[float]:
    """The training losses of an unregularized run, from its beginning to its end."""
    directory = RunDirectory(run)
    config, state = directory.config(), directory.status().get("state")
    if config.task != task:
        raise ConfigError(f"`reference` {run} is a run of {config.task}, not of {task}.")
    if config.regularizer.is_used:
        raise ConfigError(f"`reference` {run} is regularized: pass a run without regularizer.")
    if state != "finished":
        raise ConfigError(f"`reference` {run} is not finished; its state is {state!r}.")
    return [row["train_loss"] for row in directory.rows()]
