"""The `README.md` of a directory of results: all studies and their claims."""

from collections.abc import Sequence
from pathlib import Path

from ..files import replace_text
from ..sweep.table import Table
from .companion import command_of, headline, read_study, seeds_in_words
from .effort import effort_of, in_words
from .study import Record, STUDIES
from .verdicts import by_chance, RULE, VERDICTS


COLUMNS = ("study", "verdict", "claim", "the paper", "measured", "holds if", "interval")
SIGNS = {"holds": "✓ holds", "does not hold": "✗ does not hold", "undecided": "? undecided"}


def write_summary(root: Path) -> Path:
    """Write `README.md` about the studies in a directory, and return its path."""
    studies = [record for name in STUDIES if (record := read_study(root / f"{name}.json"))]
    claims = [(record["study"], claim) for record in studies for claim in record["claims"]]
    rows = [[f"[{name}](#{name})", *_cells(claim)] for name, claim in claims]
    parts = [
        "# The paper, reproduced",
        f"Written by `taynode paper run`. Spreads are standard deviations over seeds. {RULE}",
        by_chance([claim for _, claim in claims]),
        _counts([claim for _, claim in claims]),
        _all_runs(root),
        markdown(COLUMNS, rows),
        *(_section(record) for record in studies),
    ]
    file = root / "README.md"
    replace_text(file, "\n\n".join(filter(None, parts)) + "\n")
    return file


def _counts(claims: Sequence[Record]) -> str:
    papers = [claim["verdict"] for claim in claims if not claim.get("is_ours")]
    holds, fails, undecided = map(papers.count, VERDICTS)
    verb = "is" if undecided == 1 else "are"
    return f"{headline(len(papers), holds, fails)}; {undecided} {verb} undecided."


def _all_runs(root: Path) -> str:
    effort = in_words(effort_of(Table(root / "runs").results().values()))
    return f"In all, {effort}. Times are those of training and compiling." if effort else ""


def _section(record: Record) -> str:
    name = record["study"]
    about = [
        f"Scale {record['scale']}{seeds_in_words(record)}",
        *record["data"],
        in_words(record.get("effort")),
    ]
    parts = [f"## {name}", f"{record['title']}. {'; '.join(filter(None, about))}."]
    if record["numbers"] is not None:
        parts.append(f"![{record['title']}]({name}.png)")
    if remarks := record.get("remarks"):
        parts.append(f"{'; '.join(remarks)}.")
    if record["table"]:
        rows = [list(row.values()) for row in record["table"]]
        parts.append(markdown(list(record["table"][0]), rows))
    return "\n\n".join([*parts, f"```sh\n{command_of(record)}\n```"])


def _cells(claim: Record) -> list[str]:
    # The verdict comes first: on a narrow page, what is on the right has to be scrolled to.
    cells = [SIGNS[claim["verdict"]], *(claim[name] for name in ("statement", "paper", "measured"))]
    return [*cells, claim.get("rule", ""), claim.get("interval", "")]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    safe = lambda row: " | ".join(str(cell).replace("|", "\\|") for cell in row)
    lines = [safe(columns), " | ".join("---" for _ in columns), *map(safe, rows)]
    return "\n".join(f"| {line} |" for line in lines)
