"""The interface of quadratures."""

import abc
from typing import NamedTuple

import diffrax as dfx
import equinox as eqx
from jaxtyping import PRNGKeyArray

from .._types import IntScalarLike, Rate
from ..integration.problem import Problem
from ..regularizers import AbstractRegularizer


class Penalized(NamedTuple):
    """The result of a quadrature.

    - `solution`: the solution of the plain problem, with the `stats` of `tn.integrate`.
    - `integral`: the integral of the regularizer's rate along the path; a pytree like the rate.
    - `evaluations`: the number of evaluations of the rate.
    - `known`: whether `integral` has a value. If not, it has just a gradient.
    """

    solution: dfx.Solution
    integral: Rate
    evaluations: IntScalarLike
    known: bool = True


class AbstractQuadrature(eqx.Module):
    """A way to integrate the rate of a regularizer along the path of a solution.

    A quadrature of your own needs just a method `solve`. It may change the problem: save more, add
    to the state, wrap the solver, or solve more than once. It must return the solution of the
    original problem. `examples/own_quadrature.py` is an example.
    """

    @abc.abstractmethod
    def solve(
        self, problem: Problem, regularizer: AbstractRegularizer, key: PRNGKeyArray | None
    ) -> Penalized:
        """Solve the problem with `tn.integrate`, and integrate the rate of the regularizer.

        **Arguments:**

        - `problem`: the arguments of the solve, a `tn.Problem`. `problem.replace(...)` changes it.
        - `regularizer`: one regularizer, which combines those of the user. Call its `init` once
            per solve and its `rate` at points of the path; `tn.diffeqsolve` calls its `finalize`.
        - `key`: the random key of the solve, or `None` if there is none.

        **Returns:**

        A `tn.Penalized`.
        """
