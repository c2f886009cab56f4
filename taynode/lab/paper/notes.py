"""Notes on single runs: what their numbers do not say, but readers have to know."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .arms import is_usable, num_unsolved


@dataclasses.dataclass(frozen=True)
class Note:
    """A note on a run, from the part `note` of its row.

    - `busy`: whether other programs ran on the machine, or may have, so that times mean little.
    - `machine`: the machine, if it was not the usual one. Times of two machines are not compared.
    - `remarks`: anything else, for the reader.
    """

    busy: bool = False
    machine: str = ""
    remarks: Sequence[str] = ()


def note_on(result: dict[str, Any]) -> Note:
    """The note on a run; an empty one if there is none."""
    return Note(**result.get("note", {}))


def remarks_on(results: Sequence[dict[str, Any]]) -> list[str]:
    """How many runs failed or have unsolved samples, and what else is noted on them."""
    if not results:
        return []
    failed = [result for result in results if not is_usable(result)]
    unsolved = [result for result in results if result not in failed and num_unsolved(result)]
    remarks = Counter(remark for result in results for remark in note_on(result).remarks)
    return [
        f"{len(failed)} of {len(results)} runs failed, {len(unsolved)} had unsolved samples",
        *(f"{remark} ({count} runs)" for remark, count in remarks.items()),
    ]
