"""`taynode report`."""

from pathlib import Path

from ..training.config import ConfigError


def report(*runs: Path, out: Path = Path("report.html")) -> None:
    """Write one HTML page about some runs, which opens offline.

    Parameters
    ----------
    runs
        Directories of runs.
    out
        The page.

    """
    from ..report.page import write_report

    if not runs:
        raise ConfigError("`runs`: name at least one directory of a run.")
    print(write_report(list(runs), out))
