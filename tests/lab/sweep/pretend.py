"""A worker that makes up results, without JAX: `python -m tests.lab.sweep.pretend JOB DIRECTORY`.

What a job does follows from its seed.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from taynode.lab.config import RegularizerConfig, TrainConfig
from taynode.lab.files import write_json
from taynode.lab.sweep.directory import RESULT
from taynode.lab.sweep.plan import Job, job_from_dict
from taynode.lab.sweep.rows import row_of_result
from tests.lab.sweep.test_table import result


WORKER = "tests.lab.sweep.pretend"
DIES_ONCE, DIES, FAILS, HANGS_ONCE = 101, 102, 103, 104
# Seconds that a run takes, as an environment variable.
SECONDS = "TAYNODE_TEST_SECONDS"


def job(seed=0, weight=0.0):
    return Job(TrainConfig("toy", "smoke", seed, regularizer=RegularizerConfig("r2", weight)))


def main(file, directory):
    job = job_from_dict(json.loads(Path(file).read_text()))
    seed, weight = job.config.seed, job.config.regularizer.weight
    attempts = Path(directory) / "attempts.txt"
    with open(attempts, "a") as stream:
        stream.write("x")
    time.sleep(float(os.environ.get(SECONDS, 0)))
    is_first = attempts.stat().st_size == 1
    if seed == DIES or (seed == DIES_ONCE and is_first):
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == HANGS_ONCE and is_first:
        sys.stdin.read()
        return
    row = {"train_nfe": 10 + 10 / (0.1 + weight), "train_loss": 1 + weight}
    made = result(job, state="failed" if seed == FAILS else "finished", message="", row=row)
    write_json(Path(directory) / RESULT, row_of_result(made))


if __name__ == "__main__":
    main(*sys.argv[1:3])
