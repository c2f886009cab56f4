"""Cash and Karp's 5(4) method."""

from typing import ClassVar

import diffrax as dfx

from .continuous import continuous_extension, with_last_slope


_CASHKARP = with_last_slope(
    a=[
        [1 / 5],
        [3 / 40, 9 / 40],
        [3 / 10, -9 / 10, 6 / 5],
        [-11 / 54, 5 / 2, -70 / 27, 35 / 27],
        [1631 / 55296, 175 / 512, 575 / 13824, 44275 / 110592, 253 / 4096],
    ],
    b_sol=[37 / 378, 0, 250 / 621, 125 / 594, 0, 512 / 1771],
    b_error=[-277 / 64512, 0, 6925 / 370944, -6925 / 202752, -277 / 14336, 277 / 7084],
)


class CashKarp(dfx.AbstractERK):
    """Cash and Karp's 5(4) method.

    5th order Runge-Kutta method with an embedded 4th order method. Uses 6 stages, and the slope at
    the end as a seventh, which is the first stage of the next step. Uses 4th order dense output.

    Reference: J. R. Cash and A. H. Karp, A variable order Runge-Kutta method for initial value
    problems with rapidly varying right-hand sides, ACM TOMS 16, 1990.
    """

    tableau: ClassVar = _CASHKARP
    interpolation_cls: ClassVar = continuous_extension(_CASHKARP, order=4, degree=4)

    def order(self, terms):
        """The order of the method."""
        del terms
        return 5
