"""`taynode compare`."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..training.config import ConfigError


def compare(
    *runs: Path,
    out: Path = Path("report.html"),
    json_output: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """A table of some runs, and the page about them.

    Parameters
    ----------
    runs
        Directories of runs.
    out
        The page.
    json_output
        Print the table as JSON, and nothing else.

    """
    from ..report.page import write_report
    from ..report.table import compare_table

    if not runs:
        raise ConfigError("`runs`: name at least one directory of a run.")
    rows = compare_table(list(runs))
    page = write_report(list(runs), out)
    if json_output:
        print(json.dumps(rows))
        return
    print_rows(rows)
    print(f"Page: {page}")


def print_rows(rows: list[dict]) -> None:
    """A table on the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for i, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*(_show(value) for value in row.values()))
    Console().print(table)


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
