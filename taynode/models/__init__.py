"""Models made of neural differential equations: plain `eqx.Module`s."""

from .classifier import NeuralODEClassifier as NeuralODEClassifier
from .divergence import (
    AbstractDivergence as AbstractDivergence,
    ExactDivergence as ExactDivergence,
    HutchinsonDivergence as HutchinsonDivergence,
)
from .flow import ContinuousFlow as ContinuousFlow, sample_part as sample_part
from .solve import Solve as Solve
from .toy import ToyFlow as ToyFlow
from .vector_fields import (
    ConcatSquashMLP as ConcatSquashMLP,
    Dense as Dense,
    glorot_dense as glorot_dense,
    paper_dense as paper_dense,
    TimeConv as TimeConv,
    TimeMLP as TimeMLP,
)
