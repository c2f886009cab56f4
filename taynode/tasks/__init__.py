"""Data, model, loss and settings of each experiment."""

from .base import (
    AbstractTask as AbstractTask,
    find_task as find_task,
    Outcome as Outcome,
    TASKS as TASKS,
)
