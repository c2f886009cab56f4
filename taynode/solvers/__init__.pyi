"""Explicit solvers that diffrax lacks, each tested for its order in two ways."""

from .adams import Adams as Adams, AdamsController as AdamsController, AdamsError as AdamsError
from .cash_karp import CashKarp as CashKarp
from .fehlberg12 import Fehlberg12 as Fehlberg12
from .owren_zennaro import OwrenZennaro4 as OwrenZennaro4, OwrenZennaro5 as OwrenZennaro5
from .rk4 import RK4 as RK4
from .rk_fehlberg45 import RKFehlberg45 as RKFehlberg45
from .tanaka_yamashita import TanakaYamashita7 as TanakaYamashita7
