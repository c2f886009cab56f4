"""The colors of the page.

People with any kind of color vision can distinguish the groups: under simulated protanopia,
deuteranopia and tritanopia, colors are at least 10 apart in OKLab (times 100), as the tests check.
Markers differ as well. With more groups than colors, lines are dashed and swatches hollow.
"""

LIGHT = {
    "bg": "#f7f7f5",
    "surface": "#ffffff",
    "ink": "#1b1f24",
    "muted": "#565e69",
    "line": "#c9cdd3",
    "grid": "#eceef0",
    "mark": "#fff1c9",
    "link": "#0757b0",
    "warn": "#8a5300",
    # Groups; the first color is for unregularized runs.
    "g0": "#7a838f",
    "g1": "#0860c4",
    "g2": "#d9600f",
    "g3": "#0d4f43",
    "g4": "#c170e3",
    "g5": "#962584",
    # From small to large: large values stand out from the background.
    "seq0": "#efb07c",
    "seq1": "#e4605e",
    "seq2": "#b0357a",
    "seq3": "#6b1d81",
    "seq4": "#2a1155",
}
DARK = {
    "bg": "#121418",
    "surface": "#1a1d22",
    "ink": "#eceef1",
    "muted": "#a7afba",
    "line": "#434a54",
    "grid": "#292e35",
    "mark": "#4a3d14",
    "link": "#7cb8ff",
    "warn": "#f0c060",
    "g0": "#a3acb8",
    "g1": "#3d94f6",
    "g2": "#ff8a3d",
    "g3": "#a8f0cf",
    "g4": "#c25fb4",
    "g5": "#f5e264",
    "seq0": "#5f4fa8",
    "seq1": "#a3459a",
    "seq2": "#e4577a",
    "seq3": "#fb9a6b",
    "seq4": "#fdf0b0",
}


def variables(colors: dict[str, str]) -> str:
    """Colors as CSS variables."""
    return " ".join(f"--{name}: {value};" for name, value in colors.items())
