"""Owren and Zennaro's methods, designed for dense output of full order."""

from typing import ClassVar

import diffrax as dfx

from .continuous import continuous_extension, tableau


_OWRENZENNARO4 = tableau(
    a=[
        [1 / 6],
        [44 / 1369, 363 / 1369],
        [3388 / 4913, -8349 / 4913, 8140 / 4913],
        [-36764 / 408375, 767 / 1125, -32708 / 136125, 210392 / 408375],
        [1697 / 18876, 0, 50653 / 116160, 299693 / 1626240, 3375 / 11648],
    ],
    b_sol=[1697 / 18876, 0, 50653 / 116160, 299693 / 1626240, 3375 / 11648, 0],
    b_error=[-1185 / 6292, 0, 4107 / 7744, -68493 / 108416, 3375 / 11648, 0],
)


class OwrenZennaro4(dfx.AbstractERK):
    """Owren and Zennaro's 4(3) method.

    4th order Runge-Kutta method with an embedded 3rd order method. Uses 6 stages, of which the last
    is the first of the next step. Uses 4th order dense output.

    Reference: B. Owren and M. Zennaro, Derivation of efficient, continuous, explicit Runge-Kutta
    methods, SIAM J. Sci. Stat. Comput. 13, 1992.
    """

    tableau: ClassVar = _OWRENZENNARO4
    interpolation_cls: ClassVar = continuous_extension(_OWRENZENNARO4, order=4, degree=4)

    def order(self, terms):
        """The order of the method."""
        del terms
        return 4


_OWRENZENNARO5 = tableau(
    a=[
        [1 / 6],
        [1 / 16, 3 / 16],
        [1 / 4, -3 / 4, 1],
        [-3 / 4, 15 / 4, -3, 1 / 2],
        [369 / 1372, -243 / 343, 297 / 343, 1485 / 9604, 297 / 4802],
        [-133 / 4512, 1113 / 6016, 7945 / 16544, -12845 / 24064, -315 / 24064, 156065 / 198528],
        [83 / 945, 0, 248 / 825, 41 / 180, 1 / 36, 2401 / 38610, 6016 / 20475],
    ],
    b_sol=[83 / 945, 0, 248 / 825, 41 / 180, 1 / 36, 2401 / 38610, 6016 / 20475, 0],
    b_error=[188 / 945, 0, -752 / 825, 89 / 45, 1 / 9, -32242 / 19305, 6016 / 20475, 0],
)


class OwrenZennaro5(dfx.AbstractERK):
    """Owren and Zennaro's 5(4) method.

    5th order Runge-Kutta method with an embedded 4th order method. Uses 8 stages, of which the last
    is the first of the next step. Uses 5th order dense output.

    Reference: B. Owren and M. Zennaro, Derivation of efficient, continuous, explicit Runge-Kutta
    methods, SIAM J. Sci. Stat. Comput. 13, 1992.
    """

    tableau: ClassVar = _OWRENZENNARO5
    interpolation_cls: ClassVar = continuous_extension(_OWRENZENNARO5, order=5, degree=5)

    def order(self, terms):
        """The order of the method."""
        del terms
        return 5
