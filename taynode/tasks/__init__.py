"""Data, model, loss and settings of each experiment."""

from .base import (
    AbstractTask as AbstractTask,
    Batch as Batch,
    Data as Data,
    find_task as find_task,
    Outcome as Outcome,
    TASKS as TASKS,
)
