"""Results of runs that were never made, for what is made of results."""

import dataclasses

from taynode.lab.paper import flow_recipes
from taynode.lab.paper.easing import EASED, SCRATCH, TRAINED_ON
from taynode.lab.paper.fig1_toy import PATHS as TOY_PATHS
from taynode.lab.paper.fig8a_calibration import TOLERANCES
from taynode.lab.paper.fig9_taylor import POLYNOMIALS
from taynode.lab.paper.mnist_sweep import CALIBRATION
from taynode.lab.paper.r2_sweep import PATHS
from taynode.lab.paper.sampling import ENDS, SAMPLING, SOLVERS, STEPS
from taynode.lab.paper.solving import SOLVING


SAMPLES = {
    way: {"energy": 0.01, "wasserstein": 0.05}
    for way in ["adaptive", *(f"{solver} {n}" for solver in SOLVERS for n in STEPS)]
}
MEASURED = {
    flow_recipes.RECIPES: {
        flow_recipes.TRAINED_ON: {
            "test_loss": 0.5,
            "test_nfe": 50.0,
            "test_num_failed": 0,
            SAMPLING: SAMPLES,
        },
        flow_recipes.REFLOW: {
            "test_loss": 0.5,
            "test_nfe": 40.0,
            "test_num_failed": 0,
            SAMPLING: SAMPLES,
        },
        flow_recipes.EASED: {"failed": "Step 3 failed"},
    },
    TRAINED_ON: {"test_loss": 0.5, "test_nfe": 50.0, "test_num_failed": 0},
    EASED.format(0.75): {"test_loss": 0.5, "test_nfe": 38.0, "test_num_failed": 0},
    EASED.format(0.5): {"failed": "Step 3 failed"},
    SCRATCH.format(0.75): {"test_loss": 0.6, "test_nfe": 39.0, "test_num_failed": 0},
    SCRATCH.format(0.5): {"test_loss": 0.7, "test_nfe": 26.0, "test_num_failed": 0},
    TOY_PATHS: {
        "times": [0.0, 0.5, 1.0],
        "states": [[0.0, 0.2, 1.0], [1.0, 1.5, 1.7]],
        "derivative": [[1.0, 0.1, 2.0], [3.0, 0.5, 0.2]],
        "steps": [[0.3, 1.0], [0.6, 1.0]],
    },
    CALIBRATION: {
        "trained": [0.3 * x for x in TOLERANCES],
        "untrained": [0.2 * x for x in TOLERANCES],
    },
    POLYNOMIALS: {
        "times": [0.0, 0.5, 1.0],
        "states": [0.0, 0.2, 1.0],
        "pieces": [{"at": 0.5, "value": 0.2, "values": [0.1, 0.2, 0.9]}],
    },
    PATHS: {
        "times": [0.0, 0.5, 1.0],
        "states": [[[0.0, 0.0], [1.0, 0.5], [1.0, 1.0]], [[1.0, 0.0], [2.0, 0.5], [1.0, 2.0]]],
        "steps": [[0.3, 1.0], [0.6, 1.0]],
        "bends": 1.2,
    },
    SAMPLING: SAMPLES,
    ENDS: {"energy": 0.01, "joint_nfe": 60},
    SOLVING: {
        "solvers": {
            name: {"nfe": 40.0, "rejected": 0.1, "error": 0.7}
            for name in ("dopri5", "tsit5", "bosh3")
        },
        "cheapest": {"solver": "Tsit5", "rtol": 1e-4, "nfe": 22.0},
    },
}


def numbers_of(nfe: float, loss: float) -> dict[str, float]:
    columns = {"loss": loss, "error": loss / 10, "mse": loss / 5, "nfe": nfe}
    columns |= {"nll": 2 * loss, "nfe_std": nfe / 9, "sampling_nfe": nfe / 2, "num_samples": 200}
    columns |= {"mean_error": loss / 3, "variance_error": loss / 4}
    return {f"{split}_{k}": v for split in ("train", "test") for k, v in columns.items()}


def result_of(job):
    """Evaluations fall and the loss rises with the weight, and with the seed."""
    settings, seed = job.config.regularizer, job.config.seed
    share = settings.weight / (0.01 + settings.weight)
    nfe, loss = 50 - 25 * share + seed, 0.5 + 0.1 * share + 0.01 * seed
    row = numbers_of(nfe, loss) | {
        "r2": 1 - share / 2,
        "r3": 2 - share,
        "penalty": 2.5 - 2 * share,
        "kinetic": 1.0,
        "jacobian": 0.5,
        "train_seconds": 10.0 + share,
        "training_nfe": 1e5 - 1e4 * share,
    }
    history = [row | {"step": i, "epoch": float(i), "test_nfe": 20 + i * nfe / 9} for i in range(4)]
    return {
        "identity": job.identity,
        "config": dataclasses.asdict(job.config),
        "state": "finished",
        "message": "",
        "data": "made up",
        "environment": {"jax": "1.2", "cores": "2"},
        "row": row,
        "history": history,
        "evaluations": {e.name: numbers_of(2 * nfe, loss) for e in job.evaluations},
        "measured": {name: MEASURED[name] for name in job.measurements},
    }
