"""The picture of the README: evaluations during training, without and with regularization.

`python -m website.during_training` draws it from the runs in `results/laptop`.
"""

import json
from typing import Any, NamedTuple

import matplotlib
import numpy as np

from website.outside import ROOT


class Arm(NamedTuple):
    """The settings that identify the runs of an arm, and its label."""

    regularizer: str
    weight: float
    budget: float | None
    label: str


class Panel(NamedTuple):
    """A task at the tolerance of its evaluations, and the arm beside the unregularized one."""

    title: str
    task: str
    tolerance: float
    arm: Arm


PLAIN = Arm("none", 0.0, None, "without")
PANELS = (
    Panel(
        "classifier, digits\nDopri5 at 1.4e-8",
        "digits",
        1.4e-8,
        Arm("r2", 0.0, 59.0, "a budget of 59"),
    ),
    Panel(
        "latent ODE, oscillators\nDopri5 at 1e-5",
        "oscillators",
        1e-5,
        Arm("r2", 0.0, 77.0, "a budget of 77"),
    ),
    Panel(
        "latent ODE, PhysioNet\nDopri5 at 1.4e-8",
        "physionet",
        1.4e-8,
        Arm("r3", 1.0, None, "$R_3$, weight 1"),
    ),
)
THEMES = {
    "light": {"ink": "#24292f", "grid": "#d5d9de", "one": "#1d6fb8", "two": "#c2571a"},
    "dark": {"ink": "#e6edf3", "grid": "#3d444d", "one": "#63a8ef", "two": "#f0935a"},
}


def courses(panel: Panel, arm: Arm) -> tuple[np.ndarray, np.ndarray]:
    """The epochs, and the evaluations per test sample of each seed."""
    lines = (ROOT / "results" / "laptop" / "runs" / f"{panel.task}.jsonl").read_text().splitlines()
    found: dict[int, list[dict[str, Any]]] = {}
    for row in map(json.loads, lines):
        config = row["job"]["config"]
        regularizer, training = config["regularizer"], config["training"]
        same = regularizer["name"] == arm.regularizer and regularizer["weight"] == arm.weight
        # Rows of version 0.1.0 have no budgets.
        same &= regularizer.get("budget") == arm.budget and training["steps"] is None
        if same and config["evaluation"]["rtol"] == panel.tolerance:
            # Later rows are of newer versions.
            found[config["seed"]] = row["history"]
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
        for axis, panel in zip(axes, PANELS, strict=True):
            if panel.arm.budget is not None:
                axis.axhline(panel.arm.budget, color=colors["ink"], lw=1, ls=":")
            for each, color in ((PLAIN, colors["one"]), (panel.arm, colors["two"])):
                epochs, nfe = courses(panel, each)
                mean, spread = nfe.mean(axis=0), nfe.std(axis=0, ddof=1)
                axis.fill_between(
                    epochs, mean - spread, mean + spread, color=color, alpha=0.2, lw=0
                )
                axis.plot(epochs, mean, color=color, lw=2.2)
                axis.annotate(
                    f"{each.label}: {mean[-1]:.0f}",
                    (
                        epochs[-1],
                        mean[-1] + (0.045 if each is PLAIN else -0.13) * axis.get_ylim()[1],
                    ),
                    ha="right",
                    color=color,
                    fontweight="bold",
                )
            axis.set_ylim(0, 1.18 * axis.get_ylim()[1])
            axis.set_title(panel.title, fontsize=10)
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
