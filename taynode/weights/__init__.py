"""How strongly to regularize: a number, a schedule, a number of evaluations, or a loss."""

from .base import AbstractWeight as AbstractWeight, Status as Status
from .budget import Budget as Budget
from .controller import AbstractControlled as AbstractControlled, ControlState as ControlState
from .fixed import as_weight as as_weight, Constant as Constant, Scheduled as Scheduled
from .loss_budget import LossBudget as LossBudget
