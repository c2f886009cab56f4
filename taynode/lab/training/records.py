"""The files of a run, in formats that any tool reads."""

import contextlib
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

from ..config import ConfigError, from_dict, to_dict, TrainConfig
from ..files import append_line, Json, replace_text, write_json


CONFIG, METRICS, ENVIRONMENT = "config.json", "metrics.jsonl", "environment.json"
STATUS = "status.json"


class RunDirectory:
    """A directory with the files of a run.

    - `config.json`: all settings.
    - `environment.json`: versions of packages, the machine, and a hash of the data.
    - `metrics.jsonl`: one row per evaluation.
    - `status.json`: `state` is `running`, `stopped` (by Ctrl-C), `failed` (`message` says why) or
        `finished`.
    - `samples.npz`: only in a finished run; see `taynode.lab.report.samples`.
    - `checkpoints/`: see `taynode.lab.training.checkpoints`.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)

    @property
    def checkpoints(self) -> Path:
        """The directory of the checkpoints."""
        return self.path / "checkpoints"

    def create(self, config: TrainConfig, data_label: str = "", data_digest: str = "") -> None:
        """Create the directory with `config.json` and `environment.json`."""
        self.path.mkdir(parents=True, exist_ok=True)
        data = {"data": data_label, "data_digest": data_digest}
        write_json(self.path / ENVIRONMENT, environment() | data)
        # Last, because `exists` looks for this file.
        write_json(self.path / CONFIG, to_dict(config))

    def exists(self) -> bool:
        """Whether the directory holds a run."""
        return (self.path / CONFIG).exists()

    def config(self) -> TrainConfig:
        """The contents of `config.json`."""
        file = self.path / CONFIG
        if not file.exists():
            raise ConfigError(f"{self.path} is not a run: it has no {CONFIG}.")
        try:
            return from_dict(TrainConfig, json.loads(file.read_text()))
        except json.JSONDecodeError as error:
            raise ConfigError(f"{file} is not readable as JSON: {error}.") from None

    def set_status(self, state: str, *, step: int | None = None, message: str = "") -> None:
        """Write `status.json`."""
        write_json(self.path / STATUS, {"state": state, "step": step, "message": message})

    def status(self) -> Json:
        """The contents of `status.json`; empty if it is missing or damaged."""
        return self._read(STATUS)

    def environment(self) -> Json:
        """The contents of `environment.json`; empty if it is missing or damaged."""
        return self._read(ENVIRONMENT)

    def _read(self, name: str) -> Json:
        try:
            return json.loads((self.path / name).read_text())
        except (OSError, ValueError):
            return {}

    def rows(self) -> list[Json]:
        """The rows of the metrics, up to the first one that is damaged.

        A kill may have cut off the last one.
        """
        file = self.path / METRICS
        lines = file.read_text(errors="replace").splitlines() if file.exists() else []
        rows = []
        with contextlib.suppress(json.JSONDecodeError):
            for line in lines:
                rows.append(json.loads(line))
        return rows

    def append(self, row: Json) -> None:
        """Add a row to the metrics. It is on disk when this returns."""
        append_line(self.path / METRICS, json.dumps(row))

    def truncate(self, step: int) -> None:
        """Delete the rows after a step. A run that continues from there writes them again."""
        rows = [row for row in self.rows() if row["step"] <= step]
        replace_text(self.path / METRICS, "".join(json.dumps(row) + "\n" for row in rows))


def environment() -> dict[str, str]:
    """The versions of packages, and the machine."""
    import jax

    packages = ("taynode", "jax", "jaxlib", "diffrax", "equinox", "optax", "numpy")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "device": jax.devices()[0].device_kind,
        "cores": str(os.cpu_count()),
        **{name: version(name) for name in packages},
    }
