"""Figure 2: solvers of order m take many steps on polynomials of degree m and more."""

import functools
import itertools
from collections.abc import Sequence

from ..sweep.results import Result
from .chart import Chart, Heat, Panel
from .study import AbstractStudy, Claim, Numbers
from .verdicts import FAILS, HOLDS


POWERS = (1, 2, 3, 4, 5, 6)
TOLERANCE = 1.4e-8
# The order and the tolerance of each solver. Heun would take all day at the smaller tolerance.
SOLVERS = {
    "heun": (2, 1e-5),
    "fehlberg12": (2, TOLERANCE),
    "bosh3": (3, TOLERANCE),
    "owren_zennaro4": (4, TOLERANCE),
    "dopri5": (5, TOLERANCE),
}
END = 100.0


class SolverOrder(AbstractStudy):
    """Steps for z = 1 + t^K on [0, 100]."""

    name = "fig2-solver-order"
    title = "Steps rise when the degree of a trajectory reaches the solver's order"
    num_seeds = 0

    def numbers(self, results: Sequence[Result], scale: str) -> Numbers:
        """Attempted steps for each solver and degree."""
        del results, scale
        return {"steps": {name: _steps(name) for name in SOLVERS}}

    def chart(self, numbers: Numbers) -> Chart:
        """The paper's heat map: the rise of the number of steps from one degree to the next."""
        steps = numbers["steps"]
        rises = zip(*(_rises(x) for x in steps.values()), strict=True)
        heat = Heat(
            [list(row) for row in rises],
            [f"{name.rstrip('12345').replace('_', '-')} {SOLVERS[name][0]}" for name in steps],
            [f"{k - 1} to {k}" for k in POWERS[1:]],
        )
        title = "Rise of the number of steps, as a share of all rises"
        x, y = "solver and its order (heun at 1e-5)", "degree K of the trajectory"
        return Chart([Panel([heat], title, x, y)])

    def claims(self, numbers: Numbers) -> list[Claim]:
        """Steps are few for degrees below the order, and many for the others."""
        ratios = []
        for name, steps in numbers["steps"].items():
            order = SOLVERS[name][0]
            below = max(steps[k - 1] for k in POWERS if k < order)
            above = min(steps[k - 1] for k in POWERS if k >= order)
            ratios.append(above / below)
        return [
            Claim(
                "A solver of order m takes many more steps for K >= m than for K < m",
                "lower triangle of the heat map",
                f"{min(ratios):.0f} to {max(ratios):.0f} times as many",
                HOLDS if min(ratios) > 5 else FAILS,
                rule="more than 5 times as many, for each solver; no chance in it",
            )
        ]


def _rises(steps: list[int]) -> list[float]:
    differences = [max(0, b - a) for a, b in itertools.pairwise(steps)]
    return [x / max(1, sum(differences)) for x in differences]


def _steps(name: str) -> list[int]:
    import diffrax as dfx
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from ..._types import RealScalar
    from ...integration.initial_step import initial_step_size
    from ...registry import SOLVERS as NAMES
    from ...solve import diffeqsolve

    tolerance = SOLVERS[name][1]

    @eqx.filter_jit
    def count(power: RealScalar) -> RealScalar:
        return diffeqsolve(
            dfx.ODETerm(lambda t, y, k: k * t ** (k - 1) * jnp.ones_like(y)),
            NAMES.find(name)(),
            jnp.array(0.0),
            jnp.array(END),
            functools.partial(initial_step_size, variant="released"),
            jnp.ones(1),
            power,
            stepsize_controller=dfx.PIDController(rtol=tolerance, atol=tolerance),
            max_steps=None,
        ).stats["num_steps"]

    with jax.enable_x64(True):
        return [int(count(jnp.array(float(k)))) for k in POWERS]
