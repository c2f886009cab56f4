"""The names of solvers, adjoints, regularizers and quadratures, and the defaults of a solve.

Configurations, commands and builders read names and defaults here and nowhere else. A name stands
for an attribute of a module, which `find` imports. So a command line can list all names without
waiting for JAX.
"""

import difflib
import importlib
from collections.abc import Iterable, Mapping
from typing import Any


MAX_STEPS = 4096
TOLERANCE = 1e-5


class UnknownNameError(ValueError):
    """The error for an unknown name. Its message has the argument and the nearest choices."""


def one_of(argument: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise an `UnknownNameError` unless `value` is among the choices."""
    choices = list(choices)
    if value not in choices:
        near = difflib.get_close_matches(str(value), [str(c) for c in choices], n=3)
        hint = (
            f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose from {choices}."
        )
        raise UnknownNameError(f"`{argument}` {value!r} is not known: {hint}")


class Names(dict[str, str]):
    """The names of one kind of object, each with its place `module:attribute`.

    **Arguments:**

    - `argument`: the argument that such a name is passed to, for error messages.
    - `places`: the place of each name.
    """

    def __init__(self, argument: str, places: Mapping[str, str]):
        super().__init__(places)
        self.argument = argument

    def check(self, name: str) -> None:
        """Raise an `UnknownNameError` unless there is such a name."""
        one_of(self.argument, name, self)

    def find(self, name: str) -> Any:
        """Import the object of a name."""
        self.check(name)
        module, _, attribute = self[name].partition(":")
        return getattr(importlib.import_module(module), attribute)


SOLVERS = Names(
    "solver",
    {
        "dopri5": "diffrax:Dopri5",
        "dopri8": "diffrax:Dopri8",
        "tsit5": "diffrax:Tsit5",
        "bosh3": "diffrax:Bosh3",
        "heun": "diffrax:Heun",
        "midpoint": "diffrax:Midpoint",
        "euler": "diffrax:Euler",
        "rk4": "taynode.solvers:RK4",
        "fehlberg12": "taynode.solvers:Fehlberg12",
        "cash_karp": "taynode.solvers:CashKarp",
        "rkf45": "taynode.solvers:RKFehlberg45",
        "owren_zennaro4": "taynode.solvers:OwrenZennaro4",
        "owren_zennaro5": "taynode.solvers:OwrenZennaro5",
        "tanaka_yamashita7": "taynode.solvers:TanakaYamashita7",
        "adams": "taynode.solvers:Adams",
        "spark": "diffrax:SPaRK",
    },
)
# Solvers that need an equation with noise.
STOCHASTIC = ("spark",)
ADJOINTS = Names(
    "adjoint",
    {
        "accepted_steps": "taynode.adjoint:AcceptedStepAdjoint",
        "checkpoint": "diffrax:RecursiveCheckpointAdjoint",
        "direct": "diffrax:DirectAdjoint",
        "backsolve": "diffrax:BacksolveAdjoint",
    },
)
HIGHEST_DERIVATIVE = 8
REGULARIZERS = Names(
    "regularizer",
    {
        **{
            f"r{order}": "taynode.regularizers:TotalDerivative"
            for order in range(1, HIGHEST_DERIVATIVE + 1)
        },
        "kinetic": "taynode.regularizers:KineticEnergy",
        "jacobian": "taynode.regularizers:JacobianFrobenius",
        "rnode": "taynode.regularizers:RNODE",
        "directional": "taynode.regularizers:DirectionalDerivative",
        "nfe": "taynode.regularizers:ExpectedNFE",
        "curvature": "taynode.regularizers:Curvature",
        "error": "taynode.regularizers:ErrorEstimate",
        "stiffness": "taynode.regularizers:Stiffness",
        "polynomial": "taynode.regularizers:PolynomialDistance",
        "diffusion": "taynode.regularizers:DiffusionNorm",
    },
)
QUADRATURES = Names(
    "quadrature",
    {
        "sampled": "taynode.quadrature:Sampled",
        "augmented": "taynode.quadrature:Augmented",
        "backward": "taynode.quadrature:Backward",
        "steps": "taynode.quadrature:AcceptedSteps",
        "path": "taynode.quadrature:PathPoints",
    },
)
# Most regularizers have a rate at each point. Some penalize steps of the solver or whole paths.
OF_RATES = ("sampled", "augmented", "backward")
OF_STEPS = ("sampled", "steps")
OF_PATHS = ("path",)
_QUADRATURES_OF = {"error": OF_STEPS, "stiffness": OF_STEPS, "polynomial": OF_PATHS}


def quadratures_of(regularizer: str) -> tuple[str, ...]:
    """The quadratures with which a regularizer can be used."""
    return _QUADRATURES_OF.get(regularizer, OF_RATES)


def derivative_order(regularizer: str) -> int | None:
    """The order K of a regularizer named `rK`; `None` for all others."""
    total = REGULARIZERS.get(regularizer) == REGULARIZERS["r1"]
    return int(regularizer[1:]) if total else None
