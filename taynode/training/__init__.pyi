"""Training: configurations, one loop, checkpoints, records."""

from .checkpoints import (
    CheckpointError as CheckpointError,
    Checkpoints as Checkpoints,
    CheckpointWarning as CheckpointWarning,
)
from .config import (
    ConfigError as ConfigError,
    OptimizerConfig as OptimizerConfig,
    RegularizerConfig as RegularizerConfig,
    SolveConfig as SolveConfig,
    TrainConfig as TrainConfig,
)
from .evaluate import Evaluator as Evaluator
from .failures import TrainingFailed as TrainingFailed
from .loading import load as load, Run as Run
from .loop import Interrupted as Interrupted, Progress as Progress, train as train
from .records import RunDirectory as RunDirectory
