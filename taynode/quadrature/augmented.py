"""The integral as one more component of the state."""

from typing import Any

from ..integration.problem import Problem
from .augmented_state import AugmentedField
from .augmenting import AbstractAugmented


class Augmented(AbstractAugmented):
    """The quadrature of the paper: the integral rides in the solver's state.

    The penalty is as exact as the solution. The rate is evaluated at each stage of the solver, so a
    solve costs several times that of the plain system; `Sampled` is far cheaper for training. The
    penalty takes no part in step-size control, forwards or backwards.
    """

    def moving(self, field: AugmentedField, problem: Problem) -> Any:
        """Both move."""
        del problem
        return field
