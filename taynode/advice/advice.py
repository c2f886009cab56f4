"""The answer of `tn.advise`: a recommendation with its evidence."""

import dataclasses
from typing import Any

from ..models import Solve
from .measure import cheapest_tolerance, Measured
from .stiffness import StiffnessCheck


@dataclasses.dataclass(frozen=True)
class Audit:
    """The setting in use, beside the exact solution.

    - `present`: its cost and its error.
    - `loss`, `exact_loss`: the loss with this setting, and that of the exact solution; `None`
        without a loss.
    """

    present: Measured
    loss: float | None
    exact_loss: float | None

    @property
    def is_grid(self) -> bool:
        """Whether the steps are those of a fixed grid."""
        return self.present.rtol is None

    def __str__(self) -> str:
        found = self.present
        where = "on a fixed grid" if self.is_grid else f"with rtol={found.rtol:.2g}"
        text = (
            f"Present setting: {found.solver} {where}, {found.nfe:.1f} evaluations, "
            f"{found.error:.3g} times the error that is asked for."
        )
        if self.is_grid:
            verdict = (
                "solves its differential equation"
                if found.is_accurate
                else (
                    "does not solve its differential equation: a better solver gives other results"
                )
            )
            text += f" The model on its grid {verdict}."
        if self.loss is not None and self.exact_loss is not None:
            text += f" Loss {self.loss:.5g}, and {self.exact_loss:.5g} with exact solutions."
        return text


@dataclasses.dataclass(frozen=True)
class Advice:
    """Which solver, tolerance and order suit a vector field.

    - `courses`: for each solver, its measurements from loose to tight tolerances.
    - `best`: the recommended measurement; `None` if no solver was accurate enough.
    - `order`: the order K of `tn.TotalDerivative` that suits the recommended solver.
    - `correlations`: for each order, the rank correlation of R_K with the evaluations of that
        solver over the samples. Empty if all samples need the same.
    - `stiffness`: whether stability limits the steps.
    - `audit`: the setting in use; `None` if none was given.
    - `rtol`, `atol`: the accuracy that was asked for.
    """

    courses: dict[str, list[Measured]]
    best: Measured | None
    order: int
    correlations: dict[int, float]
    stiffness: StiffnessCheck
    audit: Audit | None
    rtol: float
    atol: float

    @property
    def solve(self) -> Solve:
        """The recommended solver with its settings."""
        if self.best is None:
            raise ValueError("No solver was accurate enough: ask for a larger `rtol` or `atol`.")
        return self.best.solve

    @property
    def cheapest(self) -> list[Measured]:
        """The cheapest accurate setting of each solver, the cheapest solver first."""
        found = (cheapest_tolerance(course) for course in self.courses.values())
        return sorted((m for m in found if m is not None), key=lambda m: m.nfe)

    def __str__(self) -> str:
        lines = [
            f"Accuracy asked for, the unit of errors: rtol {self.rtol:g}, atol {self.atol:g}.",
            str(self.stiffness),
        ]
        if self.audit is not None:
            lines.append(str(self.audit))
        lines += ["", f"{'solver':18} {'rtol':>8} {'NFE':>8} {'error':>8} {'worst':>8} {'ms':>8}"]
        for m in self.cheapest:
            lines.append(
                f"{m.solver:18} {m.rtol:8.1e} {m.nfe:8.1f} {m.error:8.2g} {m.worst:8.2g} "
                f"{1e3 * m.seconds:8.2f}"
            )
        without = self.courses.keys() - {m.solver for m in self.cheapest}
        if without:
            lines.append(f"Not accurate enough at any tolerance: {', '.join(sorted(without))}.")
        return "\n".join([*lines, "", self.recommendation])

    @property
    def recommendation(self) -> str:
        """The recommendation in a sentence."""
        if self.best is None:
            return "No solver was accurate enough: ask for a larger `rtol` or `atol`."
        best = self.best
        text = f"Use {best.solver} with rtol={best.rtol:.2g}, atol={best.atol:.2g}"
        if self.audit is not None:
            before = self.audit.present
            share = 100 * (best.nfe / before.nfe - 1)
            text += f": {best.nfe:.1f} evaluations instead of {before.nfe:.1f} ({share:+.0f} %)"
        return f"{text}. To make it cheaper by training, penalize R_{self.order}."

    def plot(self, ax: Any = None) -> Any:
        """Draw evaluations against true errors, a line for each solver. Needs matplotlib."""
        from matplotlib import pyplot, ticker

        ax = pyplot.subplots(figsize=(6.0, 4.2))[1] if ax is None else ax
        for name, course in self.courses.items():
            drawn = [m for m in course if m.num_failed == 0]
            is_best = self.best is not None and name == self.best.solver
            ax.loglog(
                [m.error for m in drawn],
                [m.nfe for m in drawn],
                marker="o",
                markersize=4,
                linewidth=2.2 if is_best else 1.0,
                label=name,
            )
        ax.axvline(1.0, color="gray", linestyle=":", linewidth=1.0)
        if self.best is not None:
            ax.plot([self.best.error], [self.best.nfe], "k*", markersize=14, zorder=5)
        if self.audit is not None:
            ax.plot([self.audit.present.error], [self.audit.present.nfe], "kx", markersize=9)
        ax.yaxis.set_major_formatter(ticker.ScalarFormatter())
        ax.yaxis.set_minor_formatter(ticker.ScalarFormatter())
        ax.set_xlabel("True error, in units of the accuracy asked for")
        ax.set_ylabel("Evaluations per sample")
        ax.legend(fontsize=8, frameon=False)
        return ax
