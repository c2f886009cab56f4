"""The worker for the jobs of studies, with their measurements.

Like `taynode.lab.sweep.worker`: `python -m taynode.lab.paper.worker JOB.json DIRECTORY`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..sweep.work import Measurements
from ..sweep.worker import main
from . import fig1_toy, fig8a_calibration, fig9_taylor, mnist_sweep, r2_sweep


WORKER = "taynode.lab.paper.worker"
# Figures draw what is measured, and show fewer digits. More would only make the table larger.
NUM_DIGITS = 6
MEASURES = {
    fig1_toy.PATHS: fig1_toy.paths_of,
    fig9_taylor.POLYNOMIALS: fig9_taylor.expansions_of,
    mnist_sweep.CALIBRATION: fig8a_calibration.errors_of,
    r2_sweep.PATHS: r2_sweep.paths_of,
}


def rounded(value: Any) -> Any:
    """A value of JSON with all its numbers rounded to `NUM_DIGITS` significant digits."""
    if isinstance(value, dict):
        return {name: rounded(x) for name, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.{NUM_DIGITS}g}") if isinstance(value, float) else value


def _rounding(measure: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda directory: rounded(measure(directory))


MEASUREMENTS: Measurements = {name: _rounding(measure) for name, measure in MEASURES.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MEASUREMENTS))
