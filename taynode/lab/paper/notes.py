"""Notes on single runs: facts that readers need besides the numbers."""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from ..sweep.results import Result
from .arms import is_usable, num_unsolved


@dataclasses.dataclass(frozen=True)
class Note:
    """A note on a run, from the part `note` of its row.

    - `busy`: whether other programs may have run on the machine, so that times mean little.
    - `machine`: the machine, if it was not the usual one. Times of two machines are not compared.
    - `remarks`: further remarks for the reader.
    """

    busy: bool = False
    machine: str = ""
    remarks: Sequence[str] = ()


def note_on(result: Result) -> Note:
    """The note on a run; an empty one if there is none."""
    return Note(**result.get("note", {}))


def remarks_on(results: Sequence[Result]) -> list[str]:
    """The numbers of failed runs and of runs with unsolved samples, and the remarks on runs."""
    if not results:
        return []
    failed = [result for result in results if not is_usable(result)]
    unsolved = [result for result in results if result not in failed and num_unsolved(result)]
    remarks = Counter(remark for result in results for remark in note_on(result).remarks)
    return [
        f"{len(failed)} of {len(results)} runs failed, {len(unsolved)} had unsolved samples",
        *(f"{remark} ({count} runs)" for remark, count in remarks.items()),
    ]
