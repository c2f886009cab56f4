"""Tables on the terminal."""

import sys
from collections.abc import Sequence
from typing import Any


def console() -> Any:
    """Of standard output: files and pipes have no width, so nothing is cut off there."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=240)


def print_rows(rows: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """Print rows with the same keys; numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in rows[0] if rows else ():
        is_number = all(isinstance(row[name], int | float | None) for row in rows)
        table.add_column(name, justify="right" if is_number else "left")
    for row in rows:
        # As `Text`: square brackets are no markup.
        table.add_row(*(Text(_show(value)) for value in row.values()))
    console().print(table)


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
