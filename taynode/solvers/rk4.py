"""The classic Runge-Kutta method."""

from typing import ClassVar

import diffrax as dfx

from .continuous import continuous_extension, tableau


# The embedded method is the midpoint rule.
_RK4 = tableau(
    a=[[1 / 2], [0, 1 / 2], [0, 0, 1]],
    b_sol=[1 / 6, 1 / 3, 1 / 3, 1 / 6],
    b_error=[1 / 6, -2 / 3, 1 / 3, 1 / 6],
)


class RK4(dfx.AbstractERK):
    """The classic fourth-order Runge-Kutta method.

    Uses 4 stages and 3rd order dense output. It is meant for fixed steps. Its error estimate, from
    an embedded method of order 2, is safe but wasteful.

    Reference: W. Kutta, Beitrag zur naeherungsweisen Integration totaler Differentialgleichungen,
    Zeitschrift fuer Mathematik und Physik 46, 1901.
    """

    tableau: ClassVar = _RK4
    interpolation_cls: ClassVar = continuous_extension(_RK4, order=3, degree=3)

    def order(self, terms):
        """The order of the method."""
        del terms
        return 4
