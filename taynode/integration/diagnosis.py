"""Why a solve failed, in words."""

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

    - `sample`: its index in the batch, `()` without a batch.
    - `message`: the message of diffrax.
    - `time`: the time where the solve ended.
    - `next_step`: the step that would have been next.
    - `state`, `slope`: the root mean squares of the state and of the vector field there; NaN if
        unknown.
    - `cause`: the likely cause, in words.
    - `advice`: what to try.
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
    """The result of `diagnose`. `print` shows it in words."""

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
    """Say which samples of a solve failed, where, and what to try.

    A sample whose state is NaN or infinite counts as failed, also if diffrax calls the solve
    successful, as it does with fixed steps.

    ```python
    sol = jax.vmap(lambda y0: tn.diffeqsolve(..., throw=False))(y0s)
    print(tn.diagnose(sol))
    ```

    **Arguments:**

    - `sol`: a solution of `tn.diffeqsolve(..., throw=False)`, under any number of `jax.vmap`, with
        values (so outside of `jax.jit`).
    - `limit`: the largest number of samples to describe.
    """
    codes = np.asarray(_concrete(sol.result._value))
    okay = np.isin(codes, [_code(dfx.RESULTS.successful), _code(dfx.RESULTS.event_occurred)])
    point = (sol.stats or {}).get("last_point")
    if point is not None:
        okay = okay & np.asarray(point.state_finite)
    failed = [tuple(int(i) for i in s) for s in np.argwhere(~okay)]
    findings = tuple(_finding(sol, codes, point, sample) for sample in failed[:limit])
    return Diagnosis(num_samples=codes.size, findings=findings, num_unfinished=len(failed))


def _finding(
    sol: dfx.Solution, codes: Any, point: LastPoint | None, sample: tuple[int, ...]
) -> Finding:
    item = next(i for i in _items() if _code(i) == codes[sample])
    of_sample = lambda x: np.broadcast_to(np.nan if x is None else x, codes.shape)[sample]
    if point is None:
        here = LastPoint(*[np.nan] * len(LastPoint._fields))
        cause, advice = _default(item, sol)
        advice = "Solve with `tn.diffeqsolve(..., throw=False)` to see where."
    else:
        here = LastPoint(*(of_sample(x) for x in point))
        cause, advice = _cause(here, bool(of_sample(point.is_stuck))) or _default(item, sol)
    return Finding(
        sample=sample,
        message=dfx.RESULTS[item],
        time=float(here.time),
        next_step=float(here.next_step),
        state=float(here.state),
        slope=float(here.slope),
        cause=cause,
        advice=advice,
    )


def _cause(here: LastPoint, is_stuck: bool) -> tuple[str, str] | None:
    """The likely cause and what to try, if the numbers at the last point tell."""
    if not np.isfinite(here.state):
        return _sentences(NAN_STATE)
    if here.slope * abs(here.time) > 1e6 * max(float(here.state), 1e-300) and is_stuck:
        return (
            "the solution grows without bound, and the step size fell to nothing",
            "The dynamics blow up: bound the vector field (tanh), shorten the interval, or "
            "regularize more strongly.",
        )
    if not here.error_finite:
        return _sentences(NAN_STEP)
    return _sentences(STUCK) if is_stuck else None


def _sentences(text: str) -> tuple[str, str]:
    """The first sentence, which is the cause, and the rest, which is the advice."""
    cause, _, advice = text.partition(". ")
    return cause, advice


def _default(item: Any, sol: dfx.Solution) -> tuple[str, str]:
    """The cause and what to try, from the result alone."""
    if item == dfx.RESULTS.nonfinite:
        return (
            "the state is finite, but the penalty is not finite",
            "Use a lower `order`, double precision, or a smooth activation.",
        )
    if item == dfx.RESULTS.max_steps_reached:
        return (
            f"`max_steps` = {_max_steps(sol)} were not enough",
            "Raise the weight of the regularizer, loosen `rtol` and `atol`, or raise `max_steps`; "
            "if the dynamics are stiff, an implicit solver such as `diffrax.Kvaerno5` may be "
            "faster.",
        )
    return dfx.RESULTS[item].rstrip("."), "See the message of diffrax."


def _max_steps(sol: dfx.Solution) -> Any:
    steps = (sol.stats or {}).get("max_steps")
    return None if steps is None else int(np.max(np.asarray(steps)))


def _items() -> list[Any]:
    return list(dfx.RESULTS._name_to_item.values())


def _code(item: Any) -> int:
    return int(np.asarray(item._value))


def _concrete(x: Any) -> Any:
    if isinstance(x, Tracer):
        raise TypeError(
            "`sol` has no values yet: call `tn.diagnose` outside of `jax.jit`, on what it returns."
        )
    return x
