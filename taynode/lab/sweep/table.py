"""The table of kept results: a file of JSON lines for each task, with one line for each run.

Lines are appended, and are on disk when `append` returns. A kill leaves at most an incomplete last
line, which readers skip and the next writer removes. If a job has several lines, the last one
counts.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path

from ..files import append_line, exclusive, Json, replace_text
from .plan import file_name, Job
from .rows import result_of_row, row_of_result


class Table:
    """The table of all runs in a directory. Several processes may use it at the same time.

    **Arguments:**

    - `root`: the directory, which the first append creates.
    """

    def __init__(self, root: Path):
        self.root = root
        self.seen: dict[Path, _Seen] = {}

    def results(self) -> dict[Job, Json]:
        """The result of each job that has one."""
        return {
            job: result for file in sorted(self.root.glob("*.jsonl")) for job, result in _read(file)
        }

    def check(self) -> None:
        """Raise an error if the directory cannot be written to or has no locks."""
        with self._locked():
            pass

    def append(self, result: Json) -> None:
        """Add a result that is not in the table yet. It is on disk when this returns."""
        line = json.dumps(row_of_result(result))
        file = self._file(result["config"]["task"])
        with self._locked():
            seen = self.seen[file] = _read_on(file, self.seen.get(file, _Seen()))
            if _digest(line.encode()) not in seen.digests:
                # The rest of the file is a line that was cut off.
                append_line(file, line, size=seen.size)

    def forget(self, jobs: Collection[Job]) -> None:
        """Remove the results of some jobs."""
        unwanted = set(jobs)
        with self._locked():
            for file in {self._file(job.config.task) for job in unwanted}:
                if file.exists():
                    kept = [line for line in _whole_lines(file) if _job_of(line) not in unwanted]
                    text = b"".join(line + b"\n" for line in kept).decode(errors="replace")
                    replace_text(file, text)

    def _file(self, task: str) -> Path:
        return self.root / f"{file_name(task)}.jsonl"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with exclusive(self.root / ".lock"):
            yield


@dataclasses.dataclass
class _Seen:
    """The complete lines of a file that have been read, which are not read again.

    - `inode`: the file, since another one may take its name.
    - `size`: the number of their bytes.
    - `digests`: a digest of each line.
    """

    inode: int = 0
    size: int = 0
    digests: set[bytes] = dataclasses.field(default_factory=set)


def _read_on(file: Path, seen: _Seen) -> _Seen:
    """Read the lines that were added to a file."""
    if not file.exists():
        return _Seen()
    with open(file, "rb") as stream:
        about = os.fstat(stream.fileno())
        if about.st_ino != seen.inode or about.st_size < seen.size:
            seen = _Seen(about.st_ino)
        stream.seek(seen.size)
        for line in stream:
            if line.endswith(b"\n"):
                seen.size += len(line)
                seen.digests.add(_digest(line[:-1]))
    return seen


def _digest(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()


def _whole_lines(file: Path) -> Iterator[bytes]:
    """The complete lines of a file."""
    if file.exists():
        with open(file, "rb") as stream:
            for line in stream:
                if line.endswith(b"\n"):
                    yield line[:-1]


def _read(file: Path) -> Iterator[tuple[Job, Json]]:
    problems = []
    for number, line in enumerate(_whole_lines(file), 1):
        try:
            yield result_of_row(json.loads(line))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        warnings.warn(
            f"{file}: {len(problems)} of its lines cannot be used, such as {problems[0]}.",
            stacklevel=2,
        )


def _job_of(line: bytes) -> Job | None:
    try:
        return result_of_row(json.loads(line))[0]
    except ValueError:
        return None
