"""All solvers by name, for configurations and commands."""

from collections.abc import Callable

import diffrax as dfx

from .adams import Adams
from .cash_karp import CashKarp
from .fehlberg12 import Fehlberg12
from .owren_zennaro import OwrenZennaro4, OwrenZennaro5
from .rk4 import RK4
from .rk_fehlberg45 import RKFehlberg45
from .tanaka_yamashita import TanakaYamashita7


# The names alone are also in `taynode.lab.config`, which does not import JAX.
SOLVERS: dict[str, Callable[[], dfx.AbstractSolver]] = {
    "dopri5": dfx.Dopri5,
    "dopri8": dfx.Dopri8,
    "tsit5": dfx.Tsit5,
    "bosh3": dfx.Bosh3,
    "heun": dfx.Heun,
    "midpoint": dfx.Midpoint,
    "euler": dfx.Euler,
    "rk4": RK4,
    "fehlberg12": Fehlberg12,
    "cash_karp": CashKarp,
    "rkf45": RKFehlberg45,
    "owren_zennaro4": OwrenZennaro4,
    "owren_zennaro5": OwrenZennaro5,
    "tanaka_yamashita7": TanakaYamashita7,
    "adams": Adams,
}
