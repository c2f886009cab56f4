"""The studies that have been done, as Markdown: what one sees first where results are kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import replace_text
from .companion import command_of, headline, read_study, seeds_in_words
from .effort import effort_under, in_words
from .study import STUDIES
from .verdicts import by_chance, RULE, VERDICTS


COLUMNS = ("study", "claim", "the paper", "measured", "holds if", "interval", "verdict")
SIGNS = {"holds": "✓ holds", "does not hold": "✗ does not hold", "undecided": "? undecided"}


def write_summary(root: Path) -> Path:
    """Write `README.md` about the studies in a directory, and return where it is."""
    studies = [told for name in STUDIES if (told := read_study(root / f"{name}.json"))]
    claims = [(told, claim) for told in studies for claim in told["claims"]]
    rows = [[f"[{told['study']}](#{told['study']})", *_cells(claim)] for told, claim in claims]
    parts = [
        "# The paper, reproduced",
        f"Written by `taynode paper run`. Spreads are standard deviations over seeds. {RULE}",
        by_chance([claim for _, claim in claims]),
        _counts([claim for _, claim in claims]),
        _all_runs(root),
        _markdown(COLUMNS, rows),
        *(_section(told) for told in studies),
    ]
    file = root / "README.md"
    replace_text(file, "\n\n".join(filter(None, parts)) + "\n")
    return file


def _counts(claims: Sequence[dict[str, Any]]) -> str:
    papers = [claim["verdict"] for claim in claims if not claim.get("is_ours")]
    holds, fails, undecided = map(papers.count, VERDICTS)
    verb = "is" if undecided == 1 else "are"
    return f"{headline(len(papers), holds, fails)}; {undecided} {verb} undecided."


def _all_runs(root: Path) -> str:
    told = in_words(effort_under(root))
    return f"In all, {told}. Times are those of training and compiling." if told else ""


def _section(told: dict[str, Any]) -> str:
    name = told["study"]
    about = [
        f"Scale {told['scale']}{seeds_in_words(told)}",
        *told["data"],
        in_words(told.get("effort")),
    ]
    parts = [f"## {name}", f"{told['title']}. {'; '.join(filter(None, about))}."]
    if told["numbers"] is not None:
        parts.append(f"![{told['title']}]({name}.png)")
    if remarks := told.get("remarks"):
        parts.append(f"{'; '.join(remarks)}.")
    if told["table"]:
        rows = [list(row.values()) for row in told["table"]]
        parts.append(_markdown(list(told["table"][0]), rows))
    return "\n\n".join([*parts, f"```sh\n{command_of(told)}\n```"])


def _cells(claim: dict[str, Any]) -> list[str]:
    told = [claim[name] for name in ("statement", "paper", "measured")]
    return [*told, claim.get("rule", ""), claim.get("interval", ""), SIGNS[claim["verdict"]]]


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    safe = lambda row: " | ".join(str(cell).replace("|", "\\|") for cell in row)
    lines = [safe(columns), " | ".join("---" for _ in columns), *map(safe, rows)]
    return "\n".join(f"| {line} |" for line in lines)
