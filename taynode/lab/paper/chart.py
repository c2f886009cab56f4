"""The figure of a study as plain data: the same for print and for the page."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Line:
    """Points, joined or not.

    - `x`, `y`: the coordinates of the points; `None` for a missing point.
    - `label`: the entry in the legend, if any.
    - `color`: the index of the color, from 0; -1 is gray, for guides.
    - `joined`, `dots`: whether the line and the points are drawn.
    - `x_error`, `y_error`: half the lengths of the error bars.
    - `x_band`: half the width of a band around the line, at each point.
    - `values`: a value for each point, for its color on the scale of the chart.
    - `width`, `size`: the width of the line and the size of the dots, in points.
    """

    x: Sequence[int | float]
    y: Sequence[int | float | None]
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
    - `rows`: names on the y axis, from top to bottom, at 0, 1, ...
    - `y_range`: the range of the y axis; that of the marks by default.
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

    - `share_y`: whether the panels share the y axis.
    - `values`: the name of the color scale, which is logarithmic, from `low` to `high`.
    - `height`: the height of a panel, in inches.
    """

    panels: Sequence[Panel]
    share_y: bool = False
    values: str = ""
    low: float = 0.0
    high: float = 1.0
    height: float = 3.6
