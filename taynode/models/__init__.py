"""Models made of neural differential equations: plain `eqx.Module`s."""

from .cde import ControlledField as ControlledField, NeuralCDE as NeuralCDE
from .classifier import NeuralODEClassifier as NeuralODEClassifier
from .convolution import convolve as convolve
from .divergence import (
    AbstractDivergence as AbstractDivergence,
    ExactDivergence as ExactDivergence,
    HutchinsonDivergence as HutchinsonDivergence,
)
from .flow import ContinuousFlow as ContinuousFlow, sample_part as sample_part
from .latent import (
    divergence_from_prior as divergence_from_prior,
    evidence_bound as evidence_bound,
    importance_bound as importance_bound,
    LatentODE as LatentODE,
    Reconstruction as Reconstruction,
)
from .matching import (
    FlowMatching as FlowMatching,
    generated_pairs as generated_pairs,
    independent as independent,
    Matched as Matched,
    optimal as optimal,
    uniform_times as uniform_times,
)
from .recognition import RecurrentEncoder as RecurrentEncoder, TwoLayers as TwoLayers
from .sde import (
    DiagonalNoise as DiagonalNoise,
    energy_score as energy_score,
    NeuralSDE as NeuralSDE,
)
from .sde_classifier import NeuralSDEClassifier as NeuralSDEClassifier
from .solve import Solve as Solve
from .toy import ToyFlow as ToyFlow
from .vector_fields import (
    AutonomousMLP as AutonomousMLP,
    ConcatSquashMLP as ConcatSquashMLP,
    Dense as Dense,
    glorot_dense as glorot_dense,
    paper_dense as paper_dense,
    TimeConv as TimeConv,
    TimeMLP as TimeMLP,
)
