"""`taynode report`."""

from pathlib import Path

from ..config import ConfigError


def report(*runs: Path, out: Path = Path("report.html")) -> None:
    """Write one HTML page about some runs, which opens offline.

    Parameters
    ----------
    runs
        Directories of runs, or one directory with studies, such as results/laptop.
    out
        File of the page.

    """
    from ..paper.study import has_studies
    from ..report.page import write_report

    if not runs:
        raise ConfigError("`runs`: name at least one directory of a run.")
    if len(runs) == 1 and has_studies(runs[0]):
        from ..paper.companion import write_companion

        print(write_companion(runs[0], out))
    else:
        print(write_report(list(runs), out))
