"""Figure 11: classification errors against evaluations, for weights of R_3 on MNIST."""

from .chart import Panel
from .fig8_weights import AbstractWeights
from .fronts import REMARK, WeightFront
from .study import Claim, judged, Numbers


CUTS = (0.01, 0.02, 0.05, 0.1)


class ClassificationError(AbstractWeights):
    """Figure 11."""

    name = "fig11-classification-error"
    title = "Classification error against evaluations"
    remarks = (REMARK,)

    def panel(self, numbers: Numbers) -> Panel:
        """Errors on training and test data."""
        names = {"train_error": "training error", "test_error": "test error"}
        marks = [
            mark
            for i, (key, label) in enumerate(names.items())
            for mark in WeightFront(**numbers["fronts"][key]).marks(label, i + 1)
        ]
        return Panel(marks, x="NFE per test sample", y="increase of the classification error, %")

    def claims(self, numbers: Numbers) -> list[Claim]:
        """The error has the same trade-off as the loss."""
        error, loss = (WeightFront(**numbers["fronts"][f"train_{x}"]) for x in ("error", "loss"))
        found = {cut: (error.within(cut), loss.within(cut)) for cut in CUTS}
        words = [f"{cut:.0%}: {a.in_words()} and {b.in_words()}" for cut, (a, b) in found.items()]
        return [
            judged(
                "The trade-off is much the same for the classification error as for the loss",
                "similar curves",
                "saved, and its price, with the best weight on the other seeds for at most so much "
                f"more training error, and so much more training loss: {'; '.join(words)}",
                *(
                    a.like(b, f"difference of the shares saved, {cut:.0%}")
                    for cut, (a, b) in found.items()
                ),
                rule="what is saved differs by at most 10 percentage points",
            )
        ]
