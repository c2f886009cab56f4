"""One job, in a process of its own: `python -m taynode.lab.sweep.worker JOB.json DIRECTORY`.

- `--attached`: end as soon as standard input does, that is, when the parent process is gone.
- `--task module:Class`: a task that is not built in. The job may name it, too, but only what is
    named here is imported: files are data.

A program whose jobs have measurements of its own calls `main` with a function for each of them.
"""

import argparse
import json
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

from ..data.lock import exclusive
from ..files import write_json
from ..tasks.names import find_task, import_task
from .plan import job_from_dict
from .rows import row_of_result
from .work import do, LOCK, Measurements, read_result, RESULT


ATTACHED, TASK = "--attached", "--task"


def main(words: Sequence[str], measurements: Measurements | None = None) -> int:
    """Do a job: `result.json` in its directory says how it went.

    **Arguments:**

    - `words`: of the command line.
    - `measurements`: a function for each name that a job may have among its measurements. It takes
        the directory of the run, in double precision, and returns plain data.
    """
    parser = argparse.ArgumentParser(prog="python -m taynode.lab.sweep.worker")
    parser.add_argument("job", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument(ATTACHED, action="store_true")
    parser.add_argument(TASK, action="append", default=[])
    given = parser.parse_args(words)
    if given.attached:
        threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        job = job_from_dict(json.loads(given.job.read_text()))
        name = job.config.task
        task = import_task(name) if name in given.task else find_task(name)
        with exclusive(given.directory / LOCK):
            # Whoever was here before may have done it.
            if read_result(job, given.directory) is None:
                result = do(job, given.directory, task, measurements or {})
                write_json(given.directory / RESULT, row_of_result(result))
    except Exception as error:
        traceback.print_exc()
        # The last line is what is shown.
        sys.stderr.write(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}\n")
        return 1
    return 0


def _end_with_input() -> None:
    # Not by `sys.stdin`, whose lock Python would want in the end.
    while os.read(0, 1):
        pass
    # At once: there are checkpoints to go on from.
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
