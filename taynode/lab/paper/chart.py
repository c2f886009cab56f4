"""What a study draws, as plain data: the same for print and for the page."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Line:
    """Points, joined or not.

    - `x`, `y`: of the points; `y` may lack some, as `None`.
    - `label`: in the legend; lines without one are not in it.
    - `color`: which of the colors, from 0; -1 is gray, for what is only a guide.
    - `joined`, `dots`: whether a line is drawn, and whether its points are.
    - `x_error`, `y_error`: half lengths of error bars.
    - `x_band`: half the width of a band around the line, at each point.
    - `values`: one for each point, for its color, on the scale of the chart.
    - `width`, `size`: of the line and of the dots, in points.
    """

    x: Sequence[Any]
    y: Sequence[Any]
    label: str = ""
    color: int = 0
    joined: bool = True
    dots: bool = True
    x_error: Sequence[float] = ()
    y_error: Sequence[float] = ()
    x_band: Sequence[float] = ()
    values: Sequence[float] = ()
    width: float = 1.5
    size: float = 4.0


@dataclasses.dataclass(frozen=True)
class Heat:
    """Numbers from 0 to 1 in cells, with their names."""

    values: Sequence[Sequence[float]]
    columns: Sequence[str]
    rows: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Panel:
    """Axes with marks.

    - `x_log`, `y_log`: logarithmic axes.
    - `rows`: names for the y axis, from above to below, at 0, 1, ...
    - `y_range`: of the axis; from the marks by default.
    - `from_zero`: whether the x axis begins at zero.
    """

    marks: Sequence[Line | Heat]
    title: str = ""
    x: str = ""
    y: str = ""
    x_log: bool = False
    y_log: bool = False
    rows: Sequence[str] = ()
    y_range: tuple[float, float] | None = None
    from_zero: bool = False


@dataclasses.dataclass(frozen=True)
class Chart:
    """Panels, side by side as long as there is room.

    - `share_y`: whether they have one y axis.
    - `values`: what the colors of values mean; these are on a logarithmic scale, from `low` to
        `high`.
    - `height`: in inches.
    """

    panels: Sequence[Panel]
    share_y: bool = False
    values: str = ""
    low: float = 0.0
    high: float = 1.0
    height: float = 3.6
