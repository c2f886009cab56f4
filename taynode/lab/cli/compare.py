"""`taynode compare`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..config import ConfigError
from .tables import console


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
    from ..report.table import as_json, as_rich, compare_table

    if not runs:
        raise ConfigError("`runs`: name at least one directory of a run.")
    rows = compare_table(list(runs))
    page = write_report(list(runs), out)
    if json_output:
        print(as_json(rows))
        return
    screen = console()
    screen.print(as_rich(rows, width=screen.width))
    print(f"Page: {page}")
