"""The picture of the README: evaluations during training, without and with regularization.

`python -m website.during_training` draws it from the runs in `results/laptop`.
"""

import json
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from website.outside import ROOT


class Arm(NamedTuple):
    """The settings that identify the runs of an arm."""

    regularizer: str
    weight: float
    label: str


PLAIN = Arm("none", 0.0, "without")
# The title, the task, and the arm beside the unregularized one.
PANELS = (
    ("latent ODE, PhysioNet\nDopri5 at 1.4e-8", "physionet", Arm("r3", 1.0, "R_3, weight 1")),
    ("latent ODE, oscillators\nDopri5 at 1e-5", "oscillators", Arm("r2", 0.1, "R_2, weight 0.1")),
    ("flow, two moons\nDopri5 at 1e-5", "density2d", Arm("r3", 0.003, "R_3, weight 0.003")),
)
THEMES = {
    "light": {"ink": "#24292f", "grid": "#d5d9de", "one": "#1d6fb8", "two": "#c2571a"},
    "dark": {"ink": "#e6edf3", "grid": "#3d444d", "one": "#63a8ef", "two": "#f0935a"},
}


def courses(task: str, arm: Arm) -> tuple[np.ndarray, np.ndarray]:
    """The epochs, and the evaluations per test sample of each seed."""
    lines = (ROOT / "results" / "laptop" / "runs" / f"{task}.jsonl").read_text().splitlines()
    found: dict[int, list[dict[str, Any]]] = {}
    for row in map(json.loads, lines):
        config = row["job"]["config"]
        regularizer = config["regularizer"]
        same = (regularizer["name"], regularizer["weight"]) == (arm.regularizer, arm.weight)
        if same and config["training"]["steps"] is None:
            found.setdefault(config["seed"], row["history"])
    histories = list(found.values())
    epochs = [row["epoch"] for row in histories[0]]
    return np.array(epochs), np.array([[row["test_nfe"] for row in h] for h in histories])


def draw(theme: str) -> None:
    """Draw the picture for light or dark pages."""
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    colors = THEMES[theme]
    ink = dict.fromkeys(
        ("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), colors["ink"]
    )
    settings: dict[Any, Any] = {
        **ink,
        "axes.edgecolor": colors["grid"],
        "font.size": 10,
        "svg.hashsalt": theme,
    }
    with plt.rc_context({**settings, "svg.fonttype": "path", "font.family": "DejaVu Sans"}):
        figure, axes = plt.subplots(1, len(PANELS), figsize=(9.6, 3.1))
        for axis, (title, task, arm) in zip(axes, PANELS, strict=True):
            for each, color in ((PLAIN, colors["one"]), (arm, colors["two"])):
                epochs, nfe = courses(task, each)
                mean, spread = nfe.mean(axis=0), nfe.std(axis=0, ddof=1)
                axis.fill_between(
                    epochs, mean - spread, mean + spread, color=color, alpha=0.2, lw=0
                )
                axis.plot(epochs, mean, color=color, lw=2.2)
                name = each.label.replace("R_2", "$R_2$").replace("R_3", "$R_3$")
                axis.annotate(
                    f"{name}: {mean[-1]:.0f}",
                    (
                        epochs[-1],
                        mean[-1] + (0.045 if each is PLAIN else -0.13) * axis.get_ylim()[1],
                    ),
                    ha="right",
                    color=color,
                    fontweight="bold",
                )
            axis.set_ylim(0, 1.18 * axis.get_ylim()[1])
            axis.set_title(title, fontsize=10)
            axis.set_xlabel("epoch")
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("evaluations per test sample")
        figure.tight_layout()
        place = ROOT / "docs" / "images" / f"during-training-{theme}.svg"
        figure.savefig(place, transparent=True, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    for name in THEMES:
        draw(name)
