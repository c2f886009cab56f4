"""Which parts of a step the reverse pass of a loop stores and differentiates."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.extend.core import Var
from jaxtyping import Array, Bool

from .names import FIRST_SLOPE, KEEP_STEP, KEPT_SLOPE, NEXT_T0, SLOPE
from .program import Program


class Roles(NamedTuple):
    """Which leaf of the state of the loop is what.

    - `buffers`: outputs, which each step may write to.
    - `running`: whether this sample of a batch still makes steps.
    - `tprev`, `tnext`: the times of the step.
    - `control`: the times of the step and the state of step-size control. This is what a rejected
        attempt changes.
    """

    buffers: Sequence[int]
    running: int
    tprev: int
    tnext: int
    control: Sequence[int]


@jtu.register_static
class Marks(NamedTuple):
    """Which leaves of the first state and which values that the body closes over have tangents."""

    leaves: tuple[bool, ...]
    closed: tuple[bool, ...]


class Plan(NamedTuple):
    """What to store of each step, and what to differentiate.

    - `body`: the body of the loop in the forward pass.
    - `again`: the body of the loop in the reverse pass.
    - `perturbed`: whether each leaf of the state may have a tangent.
    - `step`: the body at an accepted step, as a function of the known values, too. It returns the
        perturbed leaves of the state.
    - `stored`: the leaves of the state that are stored.
    - `capacity`: how many states are stored.
    - `replays`: whether the loop may have more steps than that.
    """

    body: Program
    again: Program
    roles: Roles
    marks: Marks
    perturbed: Sequence[bool]
    step: Program
    stored: Sequence[int]
    capacity: int
    replays: bool

    @property
    def structs(self) -> list[jax.ShapeDtypeStruct]:
        """The shapes and dtypes of the leaves of the state."""
        return _structs(self.body, len(self.marks.closed))

    @property
    def every_attempt(self) -> bool:
        """Whether rejected attempts are differentiated, too."""
        return any(self.perturbed[i] for i in self.roles.control)

    @property
    def outputs(self) -> list[int]:
        """The leaves of the state that `step` returns."""
        return [i for i, p in enumerate(self.perturbed) if p]

    def attempt(self, closed: Sequence[Array], leaves: Sequence[Array]) -> "Attempt":
        """Make an attempt of a step."""
        names = [*_keep(self.body), *_end(self.body)]
        return self._attempt(self.body.also_returning(names)(*closed, *leaves), leaves)

    def replay(self, closed: Sequence[Array], leaves: Sequence[Array]) -> "Attempt":
        """Make an attempt again. The state after it has just the stored leaves."""
        program = _replay(self.again, self.stored, len(leaves))
        return self._attempt(program(*closed, *leaves), leaves)

    def _attempt(self, values: list[Array], leaves: Sequence[Array]) -> "Attempt":
        num_known = len(_keep(self.body)) + len(_end(self.body))
        after, known = values[: len(values) - num_known], values[len(values) - num_known :]
        takes_part = leaves[self.roles.running]
        # Without a mark, all steps are accepted.
        if _keep(self.body) and not self.every_attempt:
            takes_part = takes_part & known[0]
        return Attempt(after, takes_part, known[len(_keep(self.body)) :])

    def known(self, end: list[Array]) -> list[Array]:
        """The last inputs of `step`, given where the step ends."""
        return [] if self.every_attempt else [*(jnp.array(True) for _ in _keep(self.body)), *end]


class Attempt(NamedTuple):
    """The state after an attempt, whether it is accepted, and where the step ends, if known."""

    after: list[Array]
    takes_part: Bool[Array, ""]
    end: list[Array]


def make_plan(
    body: Program,
    roles: Roles,
    marks: Marks,
    max_steps: int | None,
    capacity: Callable[[Sequence[Any]], int],
) -> Plan:
    """Plan the reverse pass of a loop.

    **Arguments:**

    - `body`: the body of the loop. Its inputs are the values that it closes over and the leaves of
        the state.
    - `capacity`: chooses how many states to store, given the shapes and dtypes of their leaves.
    """
    num_closed = len(marks.closed)
    structs = _structs(body, num_closed)
    perturbed = _fixed_point(body, marks)
    every_attempt = any(perturbed[i] for i in roles.control)
    again, slopes = _reevaluating(body, num_closed)
    known = [] if every_attempt else [*_keep(body), *_end(body)]
    outputs = [i for i, p in enumerate(perturbed) if p]

    def step_of(program: Program, without: Sequence[int] = ()) -> Program:
        return program.cut(known).returning(i for i in outputs if i not in without)

    body = body.without(FIRST_SLOPE)
    if _num_slopes(step_of(again, slopes)) > _num_slopes(step_of(body)):
        again, slopes = body, []
    # Samples that do not take part in a step make one of length zero.
    uses = _leaves(step_of(again, slopes).uses_in_derivative(), num_closed, len(structs))
    # Whether a sample takes part is stored instead of whether it is running.
    stored = sorted((uses | {roles.tprev, roles.tnext}) - {roles.running, *roles.buffers})
    size = capacity([structs[i] for i in stored])
    if max_steps is not None:
        size = min(size, max_steps)
    replays = size != max_steps
    if replays:
        # Thinning drops every second entry.
        size = max(size - size % 2, 2)
        stored = _closure(again, stored, roles.buffers, num_closed, len(structs))
    return Plan(body, again, roles, marks, perturbed, step_of(again), stored, size, replays)


def _fixed_point(body: Program, marks: Marks) -> list[bool]:
    """Whether each leaf of the state may have a tangent, in any step."""
    perturbed = list(marks.leaves)
    while True:
        after = body.perturbed([*marks.closed, *perturbed])
        both = [x or y for x, y in zip(perturbed, after, strict=True)]
        if both == perturbed:
            return perturbed
        perturbed = both


def _reevaluating(body: Program, num_closed: int) -> tuple[Program, list[int]]:
    """The body with its first slope evaluated again, and the leaves with the slope of the solver.

    If nothing but the next step uses the last slope of a step, this takes no more evaluations, and
    slopes need not be stored.
    """
    first, kept = body.named(FIRST_SLOPE), body.inputs_named(KEPT_SLOPE)
    if not first or kept is None:
        return body.without(FIRST_SLOPE), []
    return body.replacing(KEPT_SLOPE, first), [i - num_closed for i in kept]


def _num_slopes(program: Program) -> int:
    return len(program.named(SLOPE)) + len(program.named(FIRST_SLOPE))


def _structs(body: Program, num_closed: int) -> list[jax.ShapeDtypeStruct]:
    avals: list[Any] = [v.aval for v in body.jaxpr.invars[num_closed:]]
    return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]


def _keep(body: Program) -> list[Var]:
    return body.named(KEEP_STEP)


def _end(body: Program) -> list[Var]:
    return body.named(NEXT_T0)


def _closure(
    body: Program,
    stored: Sequence[int],
    buffers: Sequence[int],
    num_closed: int,
    num_leaves: int,
) -> list[int]:
    """These leaves of the state and all others that influence them in later steps.

    Steps write to buffers, but do not read them.
    """
    needed = set(stored)
    while True:
        uses = _leaves(_replay(body, sorted(needed), num_leaves).uses(), num_closed, num_leaves)
        if uses <= needed.union(buffers):
            return sorted(needed)
        needed |= uses - set(buffers)


def _replay(body: Program, stored: Sequence[int], num_leaves: int) -> Program:
    names = [*_keep(body), *_end(body)]
    last = range(num_leaves, num_leaves + len(names))
    return body.also_returning(names).returning([*stored, *last])


def _leaves(used: Sequence[bool], num_closed: int, num_leaves: int) -> set[int]:
    """The leaves of the state among the inputs of a program that are marked."""
    return {i for i, x in enumerate(used[num_closed : num_closed + num_leaves]) if x}
