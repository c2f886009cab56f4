"""Evaluate a program on series, one order at a time.

Each call of `Expansion.advance` computes one new coefficient of every slot from the coefficients
that are known already. It computes nothing of a lower order again.
"""

from collections.abc import Mapping, Sequence

from jaxtyping import PyTree

from .program import Program
from .series import Coefficient, Series


# The coefficients of slots, and the memories of rules, that one order added.
Record = tuple[dict[int, PyTree], list[dict[int, PyTree]]]


class Expansion:
    """The Taylor expansion of a program, as far as it is known.

    It holds the coefficients of all slots, and the memories of the rules.

    **Arguments:**

    - `program`: the program to expand.
    - `shared`: the series of those slots that the caller computes. These are inputs of the program,
        or values that do not change from one iteration of a loop to the next.
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
        self.memories: list[dict[int, PyTree]] = [{} for _ in program.equations]
        self._restored: list[dict[int, PyTree]] = [{} for _ in program.equations]

    def advance(self, inputs: Sequence[Coefficient] | None = None) -> list[Coefficient]:
        """Compute the next coefficient of each output.

        **Arguments:**

        - `inputs`: the next coefficient of each input: for a constant its value at order 0 and
            `None` above, for a shared input anything. It may be omitted if all inputs are shared.

        **Returns:**

        A list with a coefficient for each output. Above order 0 it is `None` for outputs that the
        program does not expand.
        """
        self.order += 1
        k, program = self.order, self.program
        if inputs is not None:
            for slot, value in zip(program.inputs, inputs, strict=True):
                if slot not in self.shared and (k == 0 or program.active[slot]):
                    self.series[slot][k] = value
        for i in range(len(program.equations)) if k == 0 else program.expanded:
            self._advance_equation(i, k)
        return [
            self.series[slot][k] if k == 0 or i in program.expanded_outputs else None
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

    def record(self) -> Record:
        """Return the arrays that this order added, a pytree for `restore`."""
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
        cls, program: Program, records: Sequence[Record], shared: Mapping[int, Series] | None = None
    ) -> "Expansion":
        """Return the expansion that made these records, one for each order so far."""
        expansion = cls(program, shared)
        for coefficients, added in records:
            expansion.order += 1
            for slot, value in coefficients.items():
                expansion.series[slot][expansion.order] = value
            for memory, new in zip(expansion.memories, added, strict=True):
                memory.update(new)
        expansion._restored = [dict(memory) for memory in expansion.memories]
        return expansion
