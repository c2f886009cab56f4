"""Rows of metrics: without what takes longest to compile, and without what no two runs share."""

import contextlib
from typing import Any

import pytest

from taynode.lab.training.evaluate import Evaluator


@contextlib.contextmanager
def without_penalties():
    """R_2, R_3, K and B are left out of evaluations, where nobody looks at them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Evaluator, "penalties", lambda *args, **options: {})
        yield


def comparable(results) -> dict[str, Any]:
    """The results of runs by their identities, without times.

    The note that a run was begun anew is left out, too.
    """
    return {
        result["identity"]: without_times({k: v for k, v in result.items() if k != "redone"})
        for result in results
    }


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "seconds" not in k}
    return [without_times(v) for v in value] if isinstance(value, list) else value
