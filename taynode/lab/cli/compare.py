"""`taynode compare`."""

from pathlib import Path

from ..config import ConfigError
from .tables import console, JsonOutput


def compare(*runs: Path, out: Path = Path("report.html"), json_output: JsonOutput = False) -> None:
    """Compare runs in a table and on a page.

    Parameters
    ----------
    runs
        Directories of runs.
    out
        File of the page.

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
