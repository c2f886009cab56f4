"""The files of a run that was made cheap."""

import dataclasses
import json
import math
from pathlib import Path

from ...easing import Front, Point
from ..config import ConfigError, fingerprint, RegularizerConfig
from ..files import Json, write_json
from .build import make_cast
from .easing import EaseConfig, valid_split
from .evaluate import Evaluator
from .loading import LoadedRun
from .parameters import write_parameters


SETTINGS, FRONT, STATE, MODELS, PAGE = "ease.json", "front.json", "state", "models", "report.html"


class EasedDirectory:
    """A directory with the front of a run.

    - `ease.json`: what was asked for, and of which model.
    - `state/`: the files of `tn.ease`, from which it continues after a kill.
    - `models/`: the parameters of each point, in files that `taynode.lab.load` reads.
    - `front.json`: the numbers of all points; only at the end, like the following.
    - `report.html`: the page about them.
    """

    def __init__(self, path: Path):
        self.path = path

    def claim(self, run: LoadedRun, config: EaseConfig) -> None:
        """Make the directory, or make sure that it belongs to the same call."""
        model = {"run": fingerprint(run.config), "step": run.step}
        settings = json.loads(json.dumps(model | dataclasses.asdict(config)))
        file = self.path / SETTINGS
        if not file.exists():
            if self.path.exists() and any(self.path.iterdir()):
                raise ConfigError(
                    f"`out` {self.path} holds other files: pass a directory that does not exist."
                )
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(file, settings)
            return
        try:
            found = json.loads(file.read_text())
        except json.JSONDecodeError as error:
            raise ConfigError(f"{file} is not readable as JSON: {error}.") from None
        for name, value in settings.items():
            if found.get(name) == value:
                continue
            if name in model:
                raise ConfigError(
                    f"`out` {self.path} belongs to another run: pass another `--out`."
                )
            raise ConfigError(
                f"`out` {self.path} was begun with `{name}` {found.get(name)}, got {value}. Pass "
                "the same to continue, or another `--out`."
            )

    @property
    def state(self) -> Path:
        """The directory of `tn.ease`."""
        return self.path / STATE

    def write(self, source: Path, run: LoadedRun, config: EaseConfig, front: Front) -> Json:
        """Write the models and `front.json`, and return the contents of the latter.

        **Arguments:**

        - `source`: the path of the run.
        - `run`, `config`, `front`: the run, what was asked for, and what was found.
        """
        (self.path / MODELS).mkdir(exist_ok=True)
        chosen = config.choose(front)
        evaluator, rows = evaluator_of(run), []
        for index, point in enumerate(front.points):
            row = {"kind": point.kind, "nfe": point.nfe, "loss": point.loss}
            row |= {"weight": point.weight, "step": point.step, "file": None}
            if point is not front.given:
                row["file"] = f"{MODELS}/{index:02d}-{point.kind}.eqx"
                _write_model(self.path / row["file"], run, config, point)
            is_tested = point is chosen or point.kind != "scouted"
            rows.append(row | (tested(run, evaluator, point) if is_tested else {}))
        evaluation = run.config.evaluation
        content = {
            "run": str(source.resolve()),
            "task": run.config.task,
            "data": run.task.data_label,
            "solver": evaluation.solver,
            "tolerance": None if evaluation.steps else evaluation.rtol,
            "split": valid_split(run),
            **dataclasses.asdict(config),
            "steps": config.steps_for(run),
            "message": front.message,
            "chosen": None if chosen is None else _index(front, chosen),
            "points": [{name: _finite(value) for name, value in row.items()} for row in rows],
        }
        write_json(self.path / FRONT, content)
        return content


def _index(front: Front, point: Point) -> int:
    return next(i for i, other in enumerate(front.points) if other is point)


def _write_model(file: Path, run: LoadedRun, config: EaseConfig, point: Point) -> None:
    penalized = RegularizerConfig(config.regularizer, point.weight)
    settings = dataclasses.replace(run.config, regularizer=penalized)
    write_parameters(file, point.model, settings, run.step + point.step)


def evaluator_of(run: LoadedRun) -> Evaluator:
    """Evaluations as those of a run."""
    return Evaluator(run.task, run.config.evaluation, seed=run.config.seed)


def tested(run: LoadedRun, evaluator: Evaluator, point: Point) -> Json:
    """The numbers of a point on test data, by which no point is chosen."""
    cast = make_cast(run.config.evaluation)
    count = run.config.final_samples
    report = evaluator.report(cast(point.model), cast(run.data.test), count, split="test")
    names = "loss", "error", "nfe", "num_failed"
    return {f"test_{name}": report[name] for name in names if name in report}


def _finite(value: object) -> object:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
