"""The interface of quadratures: ways to integrate the rate of a penalty along the path."""

import abc
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
from jaxtyping import PRNGKeyArray

from ..integration.problem import Problem
from ..regularizers import AbstractRegularizer


class Penalized(NamedTuple):
    """The result of a quadrature.

    - `solution`: the solution, as if there were no regularizer, with the `stats` of `tn.integrate`.
    - `integral`: the integral of the regularizer's rate along the path; a pytree like the rate.
    - `evaluations`: the number of evaluations of the rate.
    - `known`: whether `integral` has a value. If not, then it has just a gradient.
    """

    solution: dfx.Solution
    integral: Any
    evaluations: Any
    known: bool = True


class AbstractQuadrature(eqx.Module):
    """A way to integrate the rate of a regularizer along the path of a solution.

    A quadrature of your own needs just a method `solve`. It is free to change the problem: to save
    more, to add to the state, to wrap the solver, or to solve more than once. It must return the
    solution of the problem as it was. `examples/own_quadrature.py` is an example.
    """

    @abc.abstractmethod
    def solve(
        self, problem: Problem, regularizer: AbstractRegularizer, key: PRNGKeyArray | None
    ) -> Penalized:
        """Solve the problem with `tn.integrate`, and integrate the rate of the regularizer.

        **Arguments:**

        - `problem`: the arguments of the solve, a `tn.Problem`. `problem.replace(...)` changes it.
        - `regularizer`: one regularizer, also if the user gave a pytree of them. Call its `init`
            once per solve and its `rate` at points of the path; `finalize` is called elsewhere.
        - `key`: the random key of the solve, or `None` if the user gave none.

        **Returns:**

        A `tn.Penalized`.
        """
