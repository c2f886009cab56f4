"""The adjoint that stores accepted steps."""

import functools as ft
import math
from collections.abc import Sequence
from typing import Any

import diffrax as dfx
import equinox.internal as eqxi

from .loop import accepted_step_loop
from .marking import marked
from .private import is_unsafe_sde


class AcceptedStepAdjoint(dfx.AbstractAdjoint):
    """Backpropagate through accepted steps."""

    checkpoints: int | None = None

    def loop(
        self, *, terms, solver, stepsize_controller, throw, passed_solver_state,
        passed_controller_state, **kwargs,
    ):
        """Run the main loop of a solve."""
        del throw, passed_solver_state, passed_controller_state
        if is_unsafe_sde(terms):
            raise ValueError("unsafe")
        return self._loop(
            terms=terms,
            solver=solver,
            stepsize_controller=marked(stepsize_controller),
            inner_while_loop=ft.partial(eqxi.while_loop, kind="checkpointed"),
            outer_while_loop=ft.partial(accepted_step_loop, capacity=self._capacity),
            **kwargs,
        )

    def _capacity(self, state: Sequence[Any]) -> int:
        if self.checkpoints is not None:
            return self.checkpoints
        size = sum(math.prod(x.shape) * x.dtype.itemsize for x in state)
        return max(16, min(128, 2**25 // max(size, 1)))
