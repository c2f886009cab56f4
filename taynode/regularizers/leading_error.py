"""The leading term of the error estimate of an explicit Runge-Kutta method.

For one step of size h from (t, y) the estimate is E h^p + O(h^(p+1)). With stages
k_i(h) = f(t + c_i h, y + h sum over j of a_ij k_j(h)) and weights b of the error,
E is the sum of b_i times the coefficient of h^(p-1) in k_i(h). It is a combination of all
elementary differentials of order p, each with a constant of its own, and not a multiple of the
derivative y^(p).

Expanding each stage apart would take about p sweeps of the vector field per stage. But coefficient
k of f along a curve y + u_1 h + u_2 h^2 + ... is linear in each u_m with m > k / 2. Stages whose
curves agree up to there, after h is scaled by c_i, are replaced by one curve, their mean. This
module plans the sweeps once per method: Dopri5 takes 7 of them, where y^(5) takes 5.
"""

import functools as ft
import math
from typing import Any, NamedTuple

import diffrax as dfx
import numpy as np

from ..solvers.continuous import stage_matrix
from ..solvers.trees import elementary_weights, Tree, trees
from ..taylor import Combination, Sweep


# Coefficients of methods are rounded, some of them to 13 digits.
TOLERANCE = 1e-9
# Weights of trees in a curve; those of the solution are at most one half.
LARGE = 20.0

# A factor, and the coefficients 2, 3, ... of a curve as sums over the stages of a method.
Curve = tuple[float, list[np.ndarray]]


class Plan(NamedTuple):
    """How to compute the leading term.

    - `order`: the power p of the step size.
    - `sweeps`: the sweeps of the vector field. The first one evaluates it.
    - `result`: the leading term, from the results of sweeps of order p - 1.
    """

    order: int
    sweeps: tuple[Sweep, ...]
    result: Combination


@ft.cache
def plan(method: type[dfx.AbstractERK]) -> Plan:
    """The sweeps that compute the leading term of the error estimate of a method."""
    tableau: Any = method.tableau
    planner = _Planner(stage_matrix(tableau))
    size = np.sum(np.abs(tableau.b_error))
    order = 1
    while np.max(np.abs(planner.weights(tableau.b_error, order - 1))) < TOLERANCE * size:
        order += 1
    result = planner.combination(tableau.b_error, order - 1)
    return Plan(order, tuple(planner.sweeps), result)


class _Planner:
    """Collects the sweeps for sums over the stages of a method.

    A sum of coefficients k is known by its weights, one for each tree with k + 1 nodes: they say
    which combination of elementary differentials it is.
    """

    def __init__(self, a: np.ndarray):
        self.a, self.c = a, np.sum(a, axis=1)
        # The first two sweeps: the slope, and the second derivative. All curves begin with them.
        self.sweeps = [Sweep((), {}), Sweep((0,), {0: 1.0})]
        # For each sweep, the coefficients of its curve and its result, as weights of trees.
        self.curves: list[dict[Tree, float]] = [{}, {(): 1.0}]
        self.results = [np.ones(1), np.ones(1)]

    def weights(self, sums: np.ndarray, k: int) -> np.ndarray:
        """The weights of the sum over stages of `sums` times coefficient k."""
        return np.array([sums @ elementary_weights(tree, self.a) for tree in trees(k + 1)])

    def combination(self, sums: np.ndarray, k: int) -> Combination:
        """The sum over stages of `sums` times coefficient k, from the results of sweeps."""
        wanted = self.weights(sums, k)
        if (known := self._from_known(wanted, k)) is not None:
            return known
        total: dict[int, float] = {}
        for factor, means in self._curves(sums, k):
            position = self._along(means)
            total[position] = total.get(position, 0.0) + factor
        return total

    def _from_known(self, wanted: np.ndarray, k: int) -> Combination | None:
        """The same from sweeps that are planned already, if possible."""
        size = np.max(np.abs(wanted))
        positions = [i for i, sweep in enumerate(self.sweeps) if len(sweep.curve) == k]
        if size < TOLERANCE or not positions:
            return {} if size < TOLERANCE else None
        known = np.stack([self.results[i] for i in positions], axis=1)
        factors = np.linalg.lstsq(known, wanted, rcond=TOLERANCE)[0]
        wrong = np.max(np.abs(known @ factors - wanted)) > TOLERANCE * size
        if wrong or np.max(np.abs(known * factors)) > LARGE * size:
            return None
        return {i: float(x) for i, x in zip(positions, factors, strict=True)}

    def _curves(self, sums: np.ndarray, k: int) -> list[Curve]:
        """Curves whose coefficients k, times a factor each, add up to a sum over stages.

        A curve is given by its coefficients 2 to k as sums over stages.
        """
        shares = sums * self.c**k
        if k == 4 and (pair := self._two_curves(shares)):
            return pair
        groups: dict[tuple[float, ...], list[int]] = {}
        for j in np.flatnonzero(shares).tolist():
            alone = np.eye(len(shares))[j]
            start = [self.weights(self._mean(alone, m), m - 1) for m in range(2, k // 2 + 1)]
            agreeing = tuple(np.round(np.concatenate([[0.0], *start]), 8) + 0.0)
            groups.setdefault(agreeing, []).append(j)
        return [curve for group in groups.values() for curve in self._merged(shares, group, k)]

    def _merged(self, shares: np.ndarray, group: list[int], k: int) -> list[Curve]:
        """The mean of a group of stages; those of either sign apart if they nearly cancel."""
        part = np.zeros_like(shares)
        part[group] = shares[group]
        signs = [[j for j in group if sign * part[j] > 0] for sign in (1, -1)]
        total = float(np.sum(part))
        means = [self._mean(part / (total or 1.0), m) for m in range(2, k + 1)]
        sizes = [np.max(np.abs(self.weights(mean, m))) for m, mean in enumerate(means, start=1)]
        if not all(signs) or (total != 0 and max(sizes) < LARGE):
            return [(total, means)]
        return [curve for sign in signs for curve in self._merged(shares, sign, k)]

    def _two_curves(self, shares: np.ndarray) -> list[Curve]:
        """Two curves for k = 4. One of them begins like the solution, with coefficient 2 of 1/2.

        Coefficient 2 is a multiple of the second derivative. Coefficient 4 depends on this multiple
        by a polynomial of degree 2, whose sum over stages two points can represent.
        """
        used = shares != 0
        offset = np.where(used, self.a @ self.c / np.where(used, self.c, 1) ** 2 - 0.5, 0)
        total, first, second = (float(shares @ offset**power) for power in range(3))
        if min(abs(total), abs(first), abs(second)) < TOLERANCE or abs(second / first) > LARGE:
            return []
        rest = [self._mean(shares / total, m) for m in (3, 4)]
        straight = np.eye(len(shares))[1] / self.c[1]
        other = first**2 / second
        return [
            (total - other, [0.5 * straight, *rest]),
            (other, [(0.5 + second / first) * straight, *rest]),
        ]

    def _mean(self, shares: np.ndarray, m: int) -> np.ndarray:
        """Coefficient m of the mean of stages, with h scaled by c, as a sum over stages."""
        return (shares / np.where(shares == 0, 1, self.c) ** m) @ self.a

    def _along(self, means: list[np.ndarray]) -> int:
        """The position of the last sweep along a curve; those that are missing are added."""
        position = 1
        for m, sums in enumerate(means, start=2):
            step = self.combination(sums, m - 1)
            position = self._advance(position, step, self.weights(sums, m - 1))
        return position

    def _advance(self, position: int, step: Combination, weights: np.ndarray) -> int:
        curve = (*self.sweeps[position].curve, position)
        coefficients = {
            **self.curves[position],
            **dict(zip(trees(len(curve)), weights, strict=True)),
        }
        for i, sweep in enumerate(self.sweeps):
            if sweep.curve == curve and np.allclose(
                list(self.curves[i].values()), list(coefficients.values()), 0, TOLERANCE
            ):
                return i
        self.sweeps.append(Sweep(curve, step))
        self.curves.append(coefficients)
        products = [
            math.prod(coefficients[subtree] for subtree in tree) for tree in trees(len(curve) + 1)
        ]
        self.results.append(np.array(products))
        return len(self.sweeps) - 1
