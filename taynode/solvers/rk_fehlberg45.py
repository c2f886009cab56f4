"""Fehlberg's 5(4) method, propagating the result of order 5."""

from typing import ClassVar

import diffrax as dfx

from .continuous import continuous_extension, with_last_slope


_RKFEHLBERG45 = with_last_slope(
    a=[
        [1 / 4],
        [3 / 32, 9 / 32],
        [1932 / 2197, -7200 / 2197, 7296 / 2197],
        [439 / 216, -8, 3680 / 513, -845 / 4104],
        [-8 / 27, 2, -3544 / 2565, 1859 / 4104, -11 / 40],
    ],
    b_sol=[16 / 135, 0, 6656 / 12825, 28561 / 56430, -9 / 50, 2 / 55],
    b_error=[1 / 360, 0, -128 / 4275, -2197 / 75240, 1 / 50, 2 / 55],
)


class RKFehlberg45(dfx.AbstractERK):
    """Fehlberg's 5(4) method, propagating the result of order 5.

    5th order Runge-Kutta method with an embedded 4th order method. Uses 6 stages, and the slope at
    the end as a seventh, which is the first stage of the next step. Uses 4th order dense output.

    Reference: E. Fehlberg, Low-order classical Runge-Kutta formulas with step size control, NASA TR
    R-315, 1969.
    """

    tableau: ClassVar = _RKFEHLBERG45
    interpolation_cls: ClassVar = continuous_extension(_RKFEHLBERG45, order=4, degree=4)

    def order(self, terms):
        """The order of the method."""
        del terms
        return 5
