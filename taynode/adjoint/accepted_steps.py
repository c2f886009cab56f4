"""The adjoint that stores accepted steps."""

import functools as ft
import math
from collections.abc import Sequence
from typing import Any

import diffrax as dfx
import equinox as eqx
from jaxtyping import PyTree

from .loop import accepted_step_loop
from .manual_axes import varying, varying_axes
from .marking import marked
from .private import is_unsafe_sde, State
from .saving import saving_loop
from .unrolled import unrolled, with_first_slope, with_flag


class AcceptedStepAdjoint(dfx.AbstractAdjoint):
    """Backpropagate through accepted steps."""

    checkpoints: int | None = None

    def loop(
        self,
        *,
        terms,
        args,
        solver,
        stepsize_controller,
        init_state,
        throw,
        passed_solver_state,
        passed_controller_state,
        **kwargs,
    ):
        """Run the main loop of a solve."""
        del throw, passed_controller_state
        if is_unsafe_sde(terms):
            raise ValueError(
                "`adjoint=AcceptedStepAdjoint()` cannot be used with `UnsafeBrownianPath`, which "
                "has no reverse mode. Use `adjoint=diffrax.ForwardMode()`."
            )
        solver = unrolled(solver)
        first_slope = lambda: solver.func(terms, init_state.tprev, init_state.y, args)
        state = with_first_slope(
            solver, init_state.solver_state, not passed_solver_state, first_slope
        )
        inputs = {
            "terms": terms,
            "args": args,
            "solver": solver,
            "stepsize_controller": marked(stepsize_controller),
            "init_state": _with_solver_state(init_state, state),
            **kwargs,
        }
        # Gradients are summed over devices once, and not in each step.
        axes = varying_axes(inputs)
        final_state, stats = self._loop(
            **varying(inputs, axes),
            inner_while_loop=saving_loop,
            outer_while_loop=ft.partial(accepted_step_loop, capacity=self._capacity),
        )
        return _with_solver_state(final_state, with_flag(final_state.solver_state)), stats

    def _capacity(self, state: Sequence[Any]) -> int:
        if self.checkpoints is not None:
            return self.checkpoints
        size = sum(math.prod(x.shape) * x.dtype.itemsize for x in state)
        return max(16, min(128, 2**24 // max(size, 1)))


def _with_solver_state(state: State, solver_state: PyTree) -> State:
    return eqx.tree_at(lambda s: s.solver_state, state, solver_state, is_leaf=lambda x: x is None)
