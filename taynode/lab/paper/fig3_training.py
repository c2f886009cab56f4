"""Figure 3: evaluations and error during training, without and with regularization."""

from collections.abc import Sequence

from ..sweep.plan import Job
from ..sweep.results import Result
from . import mnist_sweep
from .arms import arms_of, paired
from .chart import Chart, Line, Panel
from .statistics import spread
from .study import AbstractStudy, Claim, judged, Numbers
from .verdicts import number, ratio


WEIGHTS = (1e-2, 1.0)
# In percentage points of training error.
MOST = 0.5


class EvaluationsDuringTraining(AbstractStudy):
    """MNIST, R_3 of two weights."""

    name = "fig3-training"
    title = "Evaluations grow during training; with regularization they need not"

    def jobs(self, scale: str, seeds: Sequence[int]) -> list[Job]:
        """Unregularized, and two weights."""
        return mnist_sweep.jobs(scale, seeds, orders=(3,), weights=WEIGHTS)

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """The history of each arm, by seed."""
        del scale
        out = {}
        for arm in paired(arms_of(results)):
            courses = [result["history"] for result in arm.results.values()]
            out[arm.label] = {
                name: [[row[name] for row in course] for course in courses]
                for name in ("epoch", "train_error", "test_nfe")
            }
        return out

    def chart(self, numbers: Numbers) -> Chart:
        """Evaluations and errors over epochs, a line for each seed."""
        marks: dict[str, list[Line]] = {"test_nfe": [], "train_error": []}
        for i, (label, course) in enumerate(numbers.items()):
            for j, epochs in enumerate(course["epoch"]):
                for name, lines in marks.items():
                    lines.append(Line(epochs, course[name][j], "" if j else label, i))
        return Chart(
            [
                Panel(marks["test_nfe"], x="epoch", y="NFE per test sample"),
                Panel(marks["train_error"], x="epoch", y="training error", y_log=True),
            ]
        )

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Evaluations grow without regularization, and less with it, at nearly the same error."""
        plain = numbers["unregularized"]
        growth = [course[-1] / course[0] for course in plain["test_nfe"]]
        claims = [
            judged(
                "Without regularization, evaluations grow during training",
                "seen in the figure",
                f"{spread(growth)} times as many in the end",
                ratio("evaluations at the end over the start", growth, at_least=1.2),
                rule="at least 1.2 times as many",
            )
        ]
        for label, regular in numbers.items():
            if label == "unregularized":
                continue
            # Without the first evaluation, which precedes training.
            nfe = [
                max(b / a for a, b in zip(x[1:], y[1:], strict=True))
                for x, y in zip(plain["test_nfe"], regular["test_nfe"], strict=True)
            ]
            more = [
                [100 * (b - a) for a, b in zip(x[1:], y[1:], strict=True)]
                for x, y in zip(plain["train_error"], regular["train_error"], strict=True)
            ]
            errors, worst = [x[-1] for x in more], [max(x) for x in more]
            claims.append(
                judged(
                    f"{label}: fewer throughout training, at nearly the same final training error",
                    "seen in the figure",
                    f"at most {spread(nfe)} of the unregularized evaluations at any time, and "
                    f"{spread(errors)} percentage points more wrong in the end, at most "
                    f"{spread(worst)} on the way",
                    ratio("evaluations with over without", nfe, at_most=1.0),
                    number("percentage points", errors, at_most=MOST),
                    rule=f"fewer every time, and at most {MOST:g} points more wrong in the end",
                )
            )
        return claims
