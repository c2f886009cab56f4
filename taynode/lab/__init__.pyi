"""The lab: tasks, training, sweeps, reports and the command line, built on top of the library."""

from .config import (
    ConfigError as ConfigError,
    OptimizerConfig as OptimizerConfig,
    RegularizerConfig as RegularizerConfig,
    SolveConfig as SolveConfig,
    TrainConfig as TrainConfig,
)
from .tasks.base import (
    AbstractTask as AbstractTask,
    Batch as Batch,
    Data as Data,
    Outcome as Outcome,
)
from .tasks.names import find_task as find_task, import_task as import_task, TASKS as TASKS
from .training.checkpoints import (
    CheckpointError as CheckpointError,
    Checkpoints as Checkpoints,
    CheckpointWarning as CheckpointWarning,
)
from .training.evaluate import Evaluator as Evaluator
from .training.failures import TrainingFailed as TrainingFailed
from .training.loading import load as load, LoadedRun as LoadedRun
from .training.loop import Interrupted as Interrupted, Progress as Progress, train as train
from .training.records import RunDirectory as RunDirectory
