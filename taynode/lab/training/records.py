"""The files of a run, in formats that any tool reads, and how files are replaced in one step."""

import contextlib
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..config import ConfigError, from_dict, to_dict, TrainConfig


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

    def status(self) -> dict[str, Any]:
        """The contents of `status.json`; empty if it is missing or damaged."""
        return self._read(STATUS)

    def environment(self) -> dict[str, Any]:
        """The contents of `environment.json`; empty if it is missing or damaged."""
        return self._read(ENVIRONMENT)

    def _read(self, name: str) -> dict[str, Any]:
        try:
            return json.loads((self.path / name).read_text())
        except (OSError, ValueError):
            return {}

    def rows(self) -> list[dict[str, Any]]:
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

    def append(self, row: dict[str, Any]) -> None:
        """Add a row to the metrics. It is on disk when this returns."""
        file = self.path / METRICS
        with naming(file), open(file, "a") as stream:
            stream.write(json.dumps(row) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def truncate(self, step: int) -> None:
        """Delete the rows after a step. A run that continues from there writes them again."""
        rows = [row for row in self.rows() if row["step"] <= step]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        replace_text(self.path / METRICS, text)


def write_json(file: Path, value: Any) -> None:
    """Replace the contents of a file by JSON, in one step."""
    replace_text(file, json.dumps(value, indent=2) + "\n")


def replace_text(file: Path, text: str) -> None:
    """Replace the contents of a file, in one step."""
    with drafted(file) as draft:
        draft.write_text(text)


@contextlib.contextmanager
def drafted(file: Path) -> Iterator[Path]:
    """Replace a file in one step, by writing to the path that this context manager gives.

    The new contents are on disk when the context is left. If it is left by an error, or if the
    process is killed, the old contents stay.
    """
    draft = file.with_name(f".{file.stem}.{os.getpid()}.tmp{file.suffix}")
    try:
        with naming(file):
            yield draft
            _sync(draft)
            os.replace(draft, file)
            _sync(file.parent)
    finally:
        draft.unlink(missing_ok=True)


def drafts(directory: Path) -> list[Path]:
    """The drafts in a directory: left behind by killed processes, or being written just now."""
    return list(directory.glob(".*.tmp*"))


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def naming(file: Path) -> Iterator[None]:
    """Add the name of a file to errors that lack it, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(file)) from None
        raise


def environment() -> dict[str, str]:
    """The versions of packages, and the machine."""
    from importlib.metadata import version

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
