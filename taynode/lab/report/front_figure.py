"""The front of a run that was made cheap, as JSON for plotly."""

from ..files import Json
from .figures import base_layout, Figure, short
from .formats import is_number


FIGURE = "front"
SPLITS = {"valid": "Validation", "train": "Training"}
# Kinds of points: a name for readers, the color, the marker and its size. The last lies on top.
KINDS = {
    "scouted": ("on the path", "g0", "circle", 7),
    "refitted": ("refitted", "g1", "circle", 13),
    "given": ("given", "g2", "square", 13),
}


def front_figure(content: Json) -> Figure:
    """Losses against evaluations. Points have their indices as identifiers, to be picked by."""
    points, split = content["points"], SPLITS[content["split"]]
    drawn = [i for i, p in enumerate(points) if is_number(p["nfe"]) and is_number(p["loss"])]
    losses = [points[i]["loss"] for i in drawn]
    traces = []
    for kind, (name, color, symbol, size) in KINDS.items():
        chosen = [i for i in drawn if points[i]["kind"] == kind]
        traces.append(
            {
                "type": "scatter",
                # The path in the order in which the weight rose.
                "mode": "lines+markers" if kind == "scouted" else "markers",
                "name": name,
                "ids": [str(i) for i in chosen],
                "x": short(points[i]["nfe"] for i in chosen),
                "y": short(points[i]["loss"] for i in chosen),
                "line": {"color": f"@{color}:0.6", "width": 1.5},
                "marker": {"color": f"@{color}", "symbol": symbol, "size": size},
                "hovertemplate": f"{name}: %{{x:.1f}} evaluations, loss %{{y:.4g}}<extra></extra>",
            }
        )
    # The page moves this ring to the point that is picked.
    ring = {"color": "rgba(0,0,0,0)", "size": 22, "line": {"color": "@ink", "width": 2}}
    none = {"type": "scatter", "mode": "markers", "x": [], "y": [], "hoverinfo": "skip"}
    traces.append(none | {"marker": ring | {"symbol": "circle"}})
    axis: Figure = {}
    # Losses of densities may be negative.
    if min(losses) > 0 and max(losses) > 8 * min(losses):
        axis = {"type": "log", "dtick": "D2", "tickformat": "~g"}
    layout = base_layout("Evaluations per sample", f"{split} loss", yaxis=axis)
    layout["margin"]["l"] = 68
    # A zoom outlives the picking of a point.
    layout["uirevision"] = FIGURE
    if is_number(content["budget"]):
        dotted = {"color": "@muted", "width": 1.5, "dash": "dot"}
        limit = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "line": dotted}
        layout["shapes"] = [limit | {"x0": content["budget"], "x1": content["budget"]}]
    return {"data": traces, "layout": layout}
