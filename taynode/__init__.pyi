"""Neural differential equations that are cheap to solve."""

from . import (
    compat as compat,
    models as models,
    solvers as solvers,
    weights as weights,
)
from .adjoint import AcceptedStepAdjoint as AcceptedStepAdjoint
from .advice import Advice as Advice, advise as advise
from .backward import backward_statistics as backward_statistics
from .easing import ease as ease, Front as Front, matching as matching
from .groups import (
    group_mesh as group_mesh,
    grouped as grouped,
    grouped_value_and_grad as grouped_value_and_grad,
)
from .integration.diagnosis import diagnose as diagnose, Diagnosis as Diagnosis
from .integration.grid import FixedGrid as FixedGrid
from .integration.initial_step import initial_step_size as initial_step_size
from .integration.integrate import integrate as integrate
from .integration.problem import Problem as Problem
from .quadrature import (
    AbstractQuadrature as AbstractQuadrature,
    AcceptedSteps as AcceptedSteps,
    Augmented as Augmented,
    Backward as Backward,
    PathPoints as PathPoints,
    Penalized as Penalized,
    PerRow as PerRow,
    Sampled as Sampled,
)
from .quadrature.regularized import regularized as regularized, StateNorm as StateNorm
from .regularizers import (
    AbstractRegularizer as AbstractRegularizer,
    Curvature as Curvature,
    DiffusionNorm as DiffusionNorm,
    DirectionalDerivative as DirectionalDerivative,
    ErrorEstimate as ErrorEstimate,
    ExpectedNFE as ExpectedNFE,
    JacobianFrobenius as JacobianFrobenius,
    KineticEnergy as KineticEnergy,
    penalty_at as penalty_at,
    PolynomialDistance as PolynomialDistance,
    RNODE as RNODE,
    Stiffness as Stiffness,
    TotalDerivative as TotalDerivative,
)
from .solve import diffeqsolve as diffeqsolve
from .taylor import (
    jet as jet,
    NoDerivativeError as NoDerivativeError,
    register_rule as register_rule,
    solution_derivatives as solution_derivatives,
    taylor_coefficients as taylor_coefficients,
)
from .weights import (
    Budget as Budget,
    LossBudget as LossBudget,
)

__version__: str
