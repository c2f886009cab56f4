"""Results on the terminal, as tables or as JSON."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from ..files import Json


JsonOutput = Annotated[bool, Parameter(name="--json", help="Print JSON and nothing else.")]


def console():
    """The console of standard output. Files and pipes get wide lines, so nothing is cut off."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=240)


def print_rows(rows: Sequence[Json], title: str | None = None, *, as_json: bool = False) -> None:
    """Print rows with the same keys as a table, with numbers to the right, or as JSON."""
    if as_json:
        print(json.dumps(rows, default=str))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in rows[0] if rows else ():
        is_number = all(isinstance(row[name], int | float | None) for row in rows)
        table.add_column(name, justify="right" if is_number else "left")
    for row in rows:
        # As `Text`, because square brackets would be markup.
        table.add_row(*(Text(_show(value)) for value in row.values()))
    console().print(table)


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
