"""Explanations of failed solves."""

import dataclasses
from typing import Any

import diffrax as dfx
import numpy as np
from jax.core import Tracer

from .failure import NAN_STATE, NAN_STEP, STUCK
from .last_point import LastPoint


@dataclasses.dataclass(frozen=True)
class Finding:
    """One sample that failed.

    - `sample`: its index in the batch; `()` without a batch.
    - `message`: the message of diffrax.
    - `time`: the time at which the solve ended.
    - `next_step`: the size of the next step, which was not made.
    - `state`, `slope`: the root mean squares of the state and the vector field at that time; NaN if
        unknown.
    - `cause`: the likely cause.
    - `advice`: a suggestion.
    """

    sample: tuple[int, ...]
    message: str
    time: float
    next_step: float
    state: float
    slope: float
    cause: str
    advice: str


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`, to be printed."""

    num_samples: int
    findings: tuple[Finding, ...]
    num_unfinished: int

    @property
    def okay(self) -> bool:
        """Whether all samples were solved."""
        return self.num_unfinished == 0

    def __str__(self) -> str:
        samples = "the sample" if self.num_samples == 1 else f"all {self.num_samples} samples"
        if self.okay:
            return f"Solved: {samples} reached the end."
        lines = [f"{self.num_unfinished} of {self.num_samples} samples failed."]
        for f in self.findings:
            name = f"sample {', '.join(map(str, f.sample))}" if f.sample else "the sample"
            lines.append(
                f"- {name} at t = {f.time:.6g}: {f.cause}. |y| = {f.state:.3g}, "
                f"|dy/dt| = {f.slope:.3g}, next step {f.next_step:.3g}. {f.advice}"
            )
        hidden = self.num_unfinished - len(self.findings)
        if hidden:
            lines.append(f"- and {hidden} more; `diagnose(sol, limit=...)` shows them.")
        return "\n".join(lines)


def diagnose(sol: dfx.Solution, *, limit: int = 10) -> Diagnosis:
    """Explain which samples of a solve failed, at which time, and what to try.

    A sample with a NaN or infinite state counts as failed, even if diffrax reports success, as it
    does with fixed steps.

    ```python
    # `solve` calls `tn.diffeqsolve`.
    sol = jax.vmap(lambda y0: solve(y0, throw=False))(y0s)
    print(tn.diagnose(sol))
    ```

    **Arguments:**

    - `sol`: a solution of `tn.diffeqsolve(..., throw=False)`, under any number of `jax.vmap`, with
        values (so outside of `jax.jit`).
    - `limit`: the largest number of samples to describe.
    """
    if isinstance(sol.result._value, Tracer):
        raise TypeError(
            "`sol` has no values yet. Call `tn.diagnose` outside of `jax.jit`, on its result."
        )
    codes = np.asarray(sol.result._value)
    okay = np.isin(codes, [_code(dfx.RESULTS.successful), _code(dfx.RESULTS.event_occurred)])
    point = (sol.stats or {}).get("last_point")
    if point is not None:
        okay = okay & np.asarray(point.state_finite)
    failed = [tuple(int(i) for i in s) for s in np.argwhere(~okay)]
    findings = tuple(_finding(sol, codes, point, sample) for sample in failed[:limit])
    return Diagnosis(num_samples=codes.size, findings=findings, num_unfinished=len(failed))


def _finding(
    sol: dfx.Solution, codes: np.ndarray, point: LastPoint | None, sample: tuple[int, ...]
) -> Finding:
    item = next(i for i in dfx.RESULTS._name_to_item.values() if _code(i) == codes[sample])
    of_sample = lambda x: float(np.broadcast_to(np.nan if x is None else x, codes.shape)[sample])
    names = "time", "next_step", "state", "slope"
    numbers = {name: of_sample(getattr(point, name, None)) for name in names}
    cause, advice = _default(item, sol)
    if point is None:
        advice = "Solve with `tn.diffeqsolve(..., throw=False)` to see where."
    elif specific := _cause(numbers, of_sample(point.error_finite), of_sample(point.is_stuck)):
        cause, advice = specific
    return Finding(sample=sample, message=dfx.RESULTS[item], cause=cause, advice=advice, **numbers)


def _cause(
    numbers: dict[str, float], error_finite: float, is_stuck: float
) -> tuple[str, str] | None:
    """The likely cause and a suggestion, from the numbers at the last point; `None` if unclear."""
    if not np.isfinite(numbers["state"]):
        return _sentences(NAN_STATE)
    growth = numbers["slope"] * abs(numbers["time"])
    if is_stuck and growth > 1e6 * max(numbers["state"], 1e-300):
        return (
            "the solution grows without bound, and the step size fell to nothing",
            "The dynamics blow up: bound the vector field (tanh), shorten the interval, or "
            "regularize more strongly.",
        )
    if not error_finite:
        return _sentences(NAN_STEP)
    return _sentences(STUCK) if is_stuck else None


def _sentences(text: str) -> tuple[str, str]:
    """Split a text into its first sentence, the cause, and the rest, the advice."""
    cause, _, advice = text.partition(". ")
    return cause, advice


def _default(item: Any, sol: dfx.Solution) -> tuple[str, str]:
    """The cause and a suggestion, from the result alone."""
    if item == dfx.RESULTS.nonfinite:
        return (
            "the state is finite, but the penalty is not finite",
            "Use a lower `order`, double precision, or a smooth activation.",
        )
    if item == dfx.RESULTS.max_steps_reached:
        return (
            f"`max_steps` = {int(np.max(np.asarray(sol.stats['max_steps'])))} were not enough",
            "Raise the weight of the regularizer, loosen `rtol` and `atol`, or raise `max_steps`; "
            "if the dynamics are stiff, an implicit solver such as `diffrax.Kvaerno5` may be "
            "faster.",
        )
    return dfx.RESULTS[item].rstrip("."), "See the message of diffrax."


def _code(item: Any) -> int:
    return int(np.asarray(item._value))
