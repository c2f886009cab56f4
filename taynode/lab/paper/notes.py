"""Notes on single runs: what their results do not say themselves, but readers have to know."""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .arms import is_usable, num_unsolved


FILE = "notes.json"


@dataclasses.dataclass(frozen=True)
class Note:
    """What is noted on a run.

    - `busy`: whether other programs ran on the machine, or may have, so that times mean little.
    - `machine`: which one it was, if not the usual one: times of two machines are not compared.
    - `remarks`: anything else, for the reader.
    """

    busy: bool = False
    machine: str = ""
    remarks: tuple[str, ...] = ()


def with_notes(results: Sequence[dict[str, Any]], root: Path) -> list[dict[str, Any]]:
    """Results, each with the note on its run from the file of notes beside the studies.

    The file has groups of runs, `{"runs": {identity: train_seconds}, "busy": true}`, or likewise
    with `"machine"` or `"remark"`. A note is about one measurement: a run that was done again took
    another time, so that the note no longer applies to it.
    """
    file = root / FILE
    groups = json.loads(file.read_text()) if file.exists() else []
    return [_with_note(result, groups) for result in results]


def _with_note(result: dict[str, Any], groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
    seconds = result["row"].get("train_seconds", math.nan)
    mine = [group for group in groups if group["runs"].get(result["identity"]) == seconds]
    note = Note(
        busy=any(group.get("busy", False) for group in mine),
        machine=next((group["machine"] for group in mine if "machine" in group), ""),
        remarks=tuple(group["remark"] for group in mine if "remark" in group),
    )
    return result | {"note": note}


def note_on(result: dict[str, Any]) -> Note:
    """The note on a run; an empty one if there is none."""
    return result.get("note", Note())


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
