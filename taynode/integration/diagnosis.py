"""What went wrong in a solve, in words."""

import dataclasses
from typing import Any

import diffrax as dfx
import numpy as np
from jax.core import Tracer

from .failure import LastPoint


@dataclasses.dataclass(frozen=True)
class Finding:
    """One sample that failed.

    - `sample`: its index in the batch, `()` if there is none.
    - `message`: what diffrax says.
    - `time`: where the solve ended.
    - `next_step`: the step that would have come next.
    - `state`, `slope`, `acceleration`: root mean squares there; NaN if unknown.
    - `cause`, `advice`: in words.
    """

    sample: tuple[int, ...]
    message: str
    time: float
    next_step: float
    state: float
    slope: float
    acceleration: float
    cause: str
    advice: str


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The outcome of `diagnose`; its `str` is for reading."""

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
                f"|dy/dt| = {f.slope:.3g}, |d2y/dt2| = {f.acceleration:.3g}, "
                f"next step {f.next_step:.3g}. {f.advice}"
            )
        hidden = self.num_unfinished - len(self.findings)
        if hidden:
            lines.append(f"- and {hidden} more; `diagnose(sol, limit=...)` shows them.")
        return "\n".join(lines)


def diagnose(sol: dfx.Solution, *, limit: int = 10) -> Diagnosis:
    """Tell which samples of a solve failed, where, and what to try.

    ```python
    sol = jax.vmap(lambda y0: tn.diffeqsolve(..., throw=False))(y0s)
    print(tn.diagnose(sol))
    ```

    **Arguments:**

    - `sol`: a solution of `tn.diffeqsolve(..., throw=False)`, under any number of `jax.vmap`, with
        values (so outside of `jax.jit`).
    - `limit`: describe at most this many samples.
    """
    codes = np.asarray(_concrete(sol.result._value))
    okay = np.isin(codes, [_code(dfx.RESULTS.successful), _code(dfx.RESULTS.event_occurred)])
    failed = np.argwhere(~okay)
    point = (sol.stats or {}).get("last_point")
    findings = tuple(_finding(sol, codes, point, tuple(int(i) for i in s)) for s in failed[:limit])
    return Diagnosis(num_samples=codes.size, findings=findings, num_unfinished=len(failed))


def _finding(sol: dfx.Solution, codes: Any, point: Any, sample: tuple[int, ...]) -> Finding:
    item = next(i for i in _items() if _code(i) == codes[sample])
    if point is None:
        numbers: dict[str, float] = dict.fromkeys(LastPoint._fields, np.nan)
        hint = "Solve with `tn.diffeqsolve(..., throw=False)` to see where."
    else:
        numbers = {
            k: float(np.broadcast_to(np.nan if v is None else v, codes.shape)[sample])
            for k, v in point._asdict().items()
        }
        hint = None
    cause, advice = _explain(item, numbers, sol)
    return Finding(
        sample=sample, message=dfx.RESULTS[item], cause=cause, advice=hint or advice, **numbers
    )


def _explain(item: Any, at: dict[str, float], sol: dfx.Solution) -> tuple[str, str]:
    """A likely cause and what to try, from the numbers at the last point."""
    known = np.isfinite(at["time"])
    if item == dfx.RESULTS.nonfinite:
        return (
            "the state is fine, but the penalty is not finite",
            "Use a lower `order`, double precision, or a smooth activation.",
        )
    if known and not np.isfinite(at["state"]):
        return "the state is NaN or infinite", "Shrink `dt0`, or look at the initial state."
    if known and not np.isfinite(at["slope"]):
        return (
            "the vector field is NaN or infinite at the state that was reached",
            "Look for a division by zero, a logarithm or a root of something negative in it.",
        )
    stuck = item == dfx.RESULTS.dt_min_reached
    if stuck and at["slope"] * abs(at["time"]) > 1e6 * max(at["state"], 1e-300):
        return (
            "the solution grows without bound, and the step size fell to nothing",
            "The dynamics blow up: bound the vector field (tanh), shorten the interval, or "
            "regularize more strongly.",
        )
    if stuck:
        return (
            "the step size fell until time stood still",
            "The vector field may return NaN just ahead, or jump: name jumps with "
            "`diffrax.ClipStepSizeController(jump_ts=...)`; or the tolerance is below what the "
            "precision can resolve.",
        )
    if item == dfx.RESULTS.max_steps_reached:
        return (
            f"`max_steps` = {_max_steps(sol)} were not enough",
            "Raise the weight of the regularizer, loosen `rtol` and `atol`, or raise `max_steps`; "
            "if |d2y/dt2| is large against |dy/dt|, the dynamics are stiff, and an implicit solver "
            "such as `diffrax.Kvaerno5` may be faster.",
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
