"""Reads runs from disk, complete or not."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from ..config import ConfigError
from ..files import Json
from ..training.records import CONFIG, ENVIRONMENT, METRICS, RunDirectory
from .formats import is_number
from .samples import read_samples, SampleArrays, SAMPLES


@dataclasses.dataclass(frozen=True)
class StoredRun:
    """The files of a run. `notes` names what is missing or damaged."""

    name: str
    config: Json
    environment: Json
    rows: tuple[Json, ...]
    samples: SampleArrays
    notes: tuple[str, ...]
    state: str = ""

    @property
    def last(self) -> Json:
        """The last row of the metrics."""
        return self.rows[-1] if self.rows else {}

    @property
    def seed(self) -> object:
        """The seed in the configuration or else in the metrics."""
        return self.config.get("seed", self.last.get("seed"))

    @property
    def regularizer(self) -> Json:
        """The settings of the regularizer."""
        value = self.config.get("regularizer")
        return value if isinstance(value, dict) else {}

    def value(self, name: str) -> float | None:
        """A metric of the last row; `None` if it is unknown."""
        value = self.last.get(name)
        return float(value) if is_number(value) else None


def read_runs(paths: Sequence[str | Path]) -> list[StoredRun]:
    """Read runs. Their names are the shortest ends of their paths that differ."""
    if not paths:
        raise ConfigError("There is nothing to report: name at least one directory of a run.")
    resolved = list(dict.fromkeys(Path(path).resolve() for path in paths))
    return [
        read_run(path, name) for path, name in zip(resolved, _short_names(resolved), strict=True)
    ]


def read_run(path: Path, name: str | None = None) -> StoredRun:
    """Read a run."""
    if not any((path / file).exists() for file in (CONFIG, METRICS)):
        raise ConfigError(f"{path} is not a run: it has neither {CONFIG} nor {METRICS}.")
    notes: list[str] = []
    config, environment = (_read_json(path / file, notes) for file in (CONFIG, ENVIRONMENT))
    rows = _read_rows(path / METRICS, notes)
    samples: SampleArrays = {}
    try:
        samples = read_samples(path)
    except (OSError, ValueError) as error:
        problem = "is missing" if isinstance(error, FileNotFoundError) else "cannot be read"
        notes.append(f"{SAMPLES} {problem}: no paths and no histograms.")
    status = RunDirectory(path).status()
    if status.get("state") == "failed":
        notes.append(f"Training failed. {status.get('message', '')}")
    if environment.get("data"):
        notes.append(f"Data: {environment['data']}.")
    state = str(status.get("state", ""))
    run = StoredRun(name or path.name, config, environment, tuple(rows), samples, (), state)
    return dataclasses.replace(run, notes=(*notes, *_doubts(run)))


def _short_names(paths: list[Path]) -> list[str]:
    for length in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def _read_json(file: Path, notes: list[str]) -> Json:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        notes.append(f"{file.name} {'is missing' if missing else 'cannot be read'}.")
        return {}
    if isinstance(value, dict):
        return value
    notes.append(f"{file.name} is not a table of settings.")
    return {}


def _read_rows(file: Path, notes: list[str]) -> list[Json]:
    """The rows up to the first damaged one; a kill may have cut off the last."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        notes.append(f"{file.name} is missing: nothing is known of the training.")
        return []
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not is_number(row.get("step")):
            notes.append(f"{file.name} is damaged behind row {len(rows)}.")
            break
        rows.append(row)
    if len(rows) == 1:
        notes.append(f"{file.name} has a single row: there are no curves to draw.")
    elif not rows:
        notes.append(f"{file.name} has no rows: nothing is known of the training.")
    return rows


def _doubts(run: StoredRun) -> list[str]:
    """Reasons to doubt the last row."""
    doubts = []
    last = run.last
    if last.get("control") in ("infeasible", "not responding"):
        doubts.append(str(last.get("control_message", "")))
    broken = sorted(
        name for name, value in last.items() if isinstance(value, float) and not is_number(value)
    )
    if broken:
        doubts.append(f"Not finite in the last row: {', '.join(broken)}.")
    epoch, epochs = last.get("epoch"), run.config.get("epochs")
    if is_number(epoch) and is_number(epochs) and epoch < epochs - 1e-9:
        doubts.append(f"The run ended early: at epoch {epoch:g} of {epochs:g}.")
    for split in ("train", "test"):
        failed, total = last.get(f"{split}_num_failed"), last.get(f"{split}_num_samples")
        if is_number(failed) and failed:
            out_of = f" of {total:g}" if is_number(total) else ""
            doubts.append(f"The solve failed for {failed:g}{out_of} {split} samples.")
    return doubts
