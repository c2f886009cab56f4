"""Evaluate a program on series, one order at a time.

Each call of `Sweep.advance` computes one new coefficient of every slot from the coefficients that
are there already. Nothing of a lower order is computed again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .program import Program
from .series import Coefficient, Series


class Sweep:
    """The state of an evaluation: the coefficients of all slots, and what the rules remember.

    `shared` gives the series of slots that the caller keeps: inputs that are known beforehand, or
    values that were computed outside a loop.
    """

    def __init__(self, program: Program, shared: Mapping[int, Series] | None = None):
        self.program = program
        self.order = -1
        self.shared = dict(shared or {})
        self.series = [Series(constant=not active) for active in program.active]
        for slot, value in program.constants.items():
            self.series[slot][0] = value
        for slot, series in self.shared.items():
            self.series[slot] = series
        self.memories: list[dict[int, Any]] = [{} for _ in program.equations]
        self._restored: list[dict[int, Any]] = [{} for _ in program.equations]

    def advance(self, inputs: Sequence[Coefficient]) -> list[Coefficient]:
        """Take the next coefficient of each input, return that of each output.

        Constant inputs have their value at order 0 and `None` above; what is given for a shared
        input is ignored. Outputs that are not needed above order 0 are `None` there.
        """
        self.order += 1
        k, program = self.order, self.program
        for slot, value in zip(program.inputs, inputs, strict=True):
            if slot not in self.shared and (k == 0 or program.active[slot]):
                self.series[slot][self.order] = value
        for i in range(len(program.equations)) if k == 0 else program.moving:
            self._advance_equation(i, k)
        return [
            self.series[slot][k] if k == 0 or i in program.moving_outputs else None
            for i, slot in enumerate(program.outputs)
        ]

    def _advance_equation(self, i: int, k: int) -> None:
        equation = self.program.equations[i]
        if equation.outputs and all(slot in self.shared for slot in equation.outputs):
            return
        inputs = [self.series[slot] for slot in equation.inputs]
        outputs = [self.series[slot] for slot in equation.outputs]
        owns_primal = equation.rule.owns_primal and any(equation.output_activity)
        if k == 0 and not owns_primal:
            values = equation.bind(*(u[0] for u in inputs))
        else:
            values = equation.rule.step(equation, k, inputs, outputs, self.memories[i])
        for series, value in zip(outputs, values, strict=True):
            if k == 0 or not series.constant:
                series[k] = value

    def record(self) -> tuple[dict[int, Any], list[dict[int, Any]]]:
        """What this order added, as a pytree: enough for `restore` to go on from."""
        k = self.order
        coefficients = {
            slot: self.series[slot][k]
            for slot in self.program.remembered
            if slot not in self.shared and (k == 0 or self.program.active[slot])
        }
        added = [
            {key: x for key, x in memory.items() if key not in seen or seen[key] is not x}
            for memory, seen in zip(self.memories, self._restored, strict=True)
        ]
        return coefficients, added

    @classmethod
    def restore(
        cls, program: Program, records: Sequence[Any], shared: Mapping[int, Series] | None = None
    ) -> "Sweep":
        """A sweep that stands where the last of the records was made."""
        sweep = cls(program, shared)
        for coefficients, added in records:
            sweep.order += 1
            for slot, value in coefficients.items():
                sweep.series[slot][sweep.order] = value
            for memory, new in zip(sweep.memories, added, strict=True):
                memory.update(new)
        sweep._restored = [dict(memory) for memory in sweep.memories]
        return sweep
