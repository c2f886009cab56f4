"""The worker for the jobs of studies, with their measurements.

Like `taynode.lab.sweep.worker`: `python -m taynode.lab.paper.worker JOB.json DIRECTORY`.
"""

import sys

from ..sweep.plan import Measurements, WithoutSamples
from ..sweep.worker import main
from . import (
    easing,
    fig1_toy,
    fig8a_calibration,
    fig9_taylor,
    flow_recipes,
    mnist_sweep,
    r2_sweep,
    sampling,
    solving,
)


WORKER = "taynode.lab.paper.worker"
MEASUREMENTS: Measurements = {
    **{
        name: WithoutSamples(measure)
        for name, measure in (easing.MEASUREMENTS | flow_recipes.MEASUREMENTS).items()
    },
    fig1_toy.PATHS: fig1_toy.paths_of,
    fig9_taylor.POLYNOMIALS: fig9_taylor.expansions_of,
    mnist_sweep.CALIBRATION: fig8a_calibration.errors_of,
    r2_sweep.PATHS: r2_sweep.paths_of,
    sampling.ENDS: WithoutSamples(sampling.end_quality_of),
    sampling.SAMPLING: WithoutSamples(sampling.sampling_of),
    solving.SOLVING: WithoutSamples(solving.solving_of),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], MEASUREMENTS))
