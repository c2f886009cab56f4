"""Fehlberg's 2(1) method, known as RK1(2)."""

from typing import ClassVar

import diffrax as dfx

from .continuous import continuous_extension, tableau


_FEHLBERG12 = tableau(
    a=[
        [1 / 2],
        [1 / 256, 255 / 256],
    ],
    b_sol=[1 / 512, 255 / 256, 1 / 512],
    b_error=[-1 / 512, 0, 1 / 512],
)


class Fehlberg12(dfx.AbstractERK):
    """Fehlberg's 2(1) method, known as RK1(2).

    2nd order Runge-Kutta method with an embedded 1st order method. Uses 3 stages. The next
    step cannot reuse any of them: the last one is the slope at the first-order result. Uses 2nd
    order dense output.

    Reference: E. Fehlberg, Low-order classical Runge-Kutta formulas with step size control, NASA TR
    R-315, 1969.
    """

    tableau: ClassVar = _FEHLBERG12
    interpolation_cls: ClassVar = continuous_extension(_FEHLBERG12, order=2, degree=2)

    def order(self, terms):
        """The order of the method."""
        del terms
        return 2
