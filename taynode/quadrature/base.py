"""What every quadrature is: a way to integrate the charge along the path."""

import abc
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx

from .._types import Key
from ..integration.problem import Problem


class Penalized(NamedTuple):
    """A solution of the plain system, and what its path was charged.

    - `solution`: as if there had been no regularizer.
    - `penalty`: a pytree like that of the regularizers.
    - `evaluations`: how many times the rate was evaluated.
    - `known`: whether `penalty` has its value; if not, it has just its gradient.
    """

    solution: dfx.Solution
    penalty: Any
    evaluations: Any
    known: bool = True


class AbstractQuadrature(eqx.Module):
    """How the charge is integrated along the path.

    A quadrature has the whole problem in its hands: it may add to the state, save more, wrap the
    solver (for charges per step, such as error estimates), or solve more than once. It must leave
    the solution of the plain system as it is.
    """

    @abc.abstractmethod
    def solve(self, problem: Problem, regularizer: Any, key: Key | None) -> Penalized:
        """Solve the problem with `taynode.integration.integrate.integrate`, and charge its path."""
