"""A search with made-up runs, to be killed: `python -m tests.lab.sweep.searching ROOT`."""

import sys
from pathlib import Path

from taynode.lab.config import TrainConfig
from taynode.lab.sweep.config import read_sweep
from taynode.lab.sweep.executor import LocalExecutor
from taynode.lab.sweep.search import Search

from .pretend import WORKER


TRIALS = 12


def make(root, **changes):
    search = {
        "trials": TRIALS,
        "space": {
            "weight": {"low": 1e-3, "high": 10.0, "log": True},
            "regularizer": ["r2", "r3"],
            "training": {"solver": ["dopri5", "tsit5"]},
            "epochs": {"low": 1, "high": 9},
        },
    }
    sweep = read_sweep("made", {"task": "toy", "scale": "smoke", "search": search | changes})
    return Search(sweep, TrainConfig("toy", "smoke"), root / "runs", root)


if __name__ == "__main__":
    make(Path(sys.argv[1])).run(LocalExecutor(2, worker=WORKER))
