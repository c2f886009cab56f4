"""One job in its own process: `python -m taynode.lab.sweep.worker JOB.json DIRECTORY`.

- `--attached`: end when standard input is closed, that is, when the parent process has ended.
- `--task module:Class`: a task that is not built in. A task that only the job names is never
    imported, because the job may come from a file.

A program with measurements of its own calls `main` with a function for each of them.
"""

import argparse
import json
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

from ..files import exclusive, write_json
from ..launch import end_with_input
from ..tasks.names import find_task, import_task
from .directory import LOCK, read_result, RESULT
from .plan import job_from_dict, Measurements
from .rows import row_of_result


ATTACHED, TASK = "--attached", "--task"


def main(words: Sequence[str], measurements: Measurements | None = None) -> int:
    """Execute a job, write its result to `result.json` in its directory, and return an exit code.

    **Arguments:**

    - `words`: the words of the command line.
    - `measurements`: a function for each name of a measurement that jobs may have. It takes the
        directory of the run, with double precision enabled, and returns a JSON object.
    """
    parser = argparse.ArgumentParser(prog="python -m taynode.lab.sweep.worker")
    parser.add_argument("job", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument(ATTACHED, action="store_true")
    parser.add_argument(TASK, action="append", default=[])
    given = parser.parse_args(words)
    if given.attached:
        threading.Thread(target=end_with_input, daemon=True).start()
    try:
        job = job_from_dict(json.loads(given.job.read_text()))
        name = job.config.task
        task = import_task(name) if name in given.task else find_task(name)
        with exclusive(given.directory / LOCK):
            # An earlier worker may have written the result.
            if read_result(job, given.directory) is None:
                from .work import do

                result = do(job, given.directory, task, measurements or {})
                write_json(given.directory / RESULT, row_of_result(result))
    except Exception as error:
        traceback.print_exc()
        # The executor shows the last line.
        sys.stderr.write(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
