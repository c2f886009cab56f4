"""Tanaka and Yamashita's 7(6) method."""

from typing import ClassVar

import diffrax as dfx

from .continuous import continuous_extension, with_last_slope


_TANAKAYAMASHITA7 = with_last_slope(
    a=[
        [0.07816646510113846],
        [0.029312424412926925, 0.08793727323878078],
        [0.04396863661939039, 0.0, 0.13190590985817116],
        [0.7361834837738382, 0.0, -2.8337999624233303, 2.5963565888408913],
        [-12.062819391370866, 0.0, 48.20838100175243, -38.05863046463434, 2.6851905444372632],
        [
            105.21957276320198,
            0.0,
            -417.92888626241256,
            332.3155504499333,
            -19.827591183572938,
            1.2125399024549859,
        ],
        [
            114.67755718631742,
            0.0,
            -455.5612169896097,
            362.24095553923144,
            -21.67190442182809,
            1.3189132007137807,
            -0.0048025566150346555,
        ],
        [
            115.21334870553768,
            0.0,
            -457.69356568613233,
            363.93688218862735,
            -21.776682078900294,
            1.3250670887878468,
            -0.004518190986768983,
            -0.0005320269334859959,
        ],
        [
            115.18928245800194,
            0.0,
            -457.598022271643,
            363.8610256312148,
            -21.77212754027556,
            1.3248804645074317,
            -0.0045057252106918315,
            -0.0005330165949429136,
            0.0,
        ],
    ],
    b_sol=[
        0.05126014249744686,
        0.0,
        0.0,
        0.27521638456212627,
        0.33696650340710543,
        0.18986072244906577,
        8.461099418514403,
        -130.15941672640542,
        121.84501355497527,
        0.0,
    ],
    b_error=[
        0.0002577249070696835,
        0.0,
        0.0,
        -0.0009229104845391819,
        0.0031779013374194105,
        -0.01210458894174817,
        2.706023959472591,
        -44.541445641266066,
        121.84501355497527,
        -80.0,
    ],
)


class TanakaYamashita7(dfx.AbstractERK):
    """Tanaka and Yamashita's 7(6) method.

    7th order Runge-Kutta method with an embedded 6th order method. Uses 10 stages, and the slope at
    the end as an eleventh, which is the first stage of the next step. Uses 4th order dense output.

    Reference: M. Tanaka, S. Muramatsu and S. Yamashita, On the optimization of some nine-stage
    seventh-order Runge-Kutta method, Information Processing Society of Japan 33, 1992.
    """

    tableau: ClassVar = _TANAKAYAMASHITA7
    interpolation_cls: ClassVar = continuous_extension(_TANAKAYAMASHITA7, order=4, degree=4)

    def order(self, terms):
        """The order of the method."""
        del terms
        return 7
