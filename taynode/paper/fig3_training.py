"""Figure 3: evaluations and loss during training, without and with regularization."""

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from ..sweep.plan import Job
from . import mnist_sweep
from .arms import arms_of
from .chart import Chart, Line, Panel
from .statistics import mean, spread
from .study import AbstractStudy, Claim, verdict


WEIGHTS = (1e-2, 1.0)


class Training(AbstractStudy):
    """MNIST, R_3 of two weights."""

    name: ClassVar[str] = "fig3-training"
    title: ClassVar[str] = "Evaluations grow during training; with regularization they need not"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Unregularized, and two weights."""
        return mnist_sweep.jobs(scale, seeds, orders=(3,), weights=WEIGHTS)

    def numbers(self, results: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
        """The course of each arm, by seed."""
        del scale
        out = {}
        for arm in arms_of(results):
            courses = [result["history"] for result in arm.results.values()]
            out[arm.label] = {
                name: [[row[name] for row in course] for course in courses]
                for name in ("epoch", "train_loss", "test_nfe")
            }
        return out

    def chart(self, numbers: dict[str, Any]) -> Chart:
        """Evaluations and loss over epochs, a line a seed."""
        marks: dict[str, list[Line]] = {"test_nfe": [], "train_loss": []}
        for i, (label, course) in enumerate(numbers.items()):
            for j, epochs in enumerate(course["epoch"]):
                for name, lines in marks.items():
                    lines.append(Line(epochs, course[name][j], "" if j else label, i))
        return Chart(
            [
                Panel(marks["test_nfe"], x="epoch", y="NFE per test sample"),
                Panel(marks["train_loss"], x="epoch", y="training loss", y_log=True),
            ]
        )

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Evaluations grow without, and grow less with regularization."""
        ends = {
            label: [course[-1] for course in courses["test_nfe"]]
            for label, courses in numbers.items()
        }
        plain = numbers["unregularized"]["test_nfe"]
        first, last = mean(course[0] for course in plain), mean(ends["unregularized"])
        regular = {label: values for label, values in ends.items() if label != "unregularized"}
        # From no weight to the largest.
        falling = [mean(values) for values in ends.values()]
        words = ", ".join(f"{label}: {spread(values)}" for label, values in regular.items())
        return [
            Claim(
                "Without regularization, evaluations grow during training",
                "no number",
                f"{first:.3g} to {last:.3g}",
                verdict(last > 1.2 * first, last, first),
            ),
            Claim(
                "With regularization, they grow less, the more the weight",
                "no number",
                words,
                verdict(all(b < a for a, b in itertools.pairwise(falling)), *falling),
            ),
        ]
