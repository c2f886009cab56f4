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


# XLA fills the memory of stored states with zeros in each solve. For 12 MB this takes as long as 10
# gradients of a small vector field. Also, the C library maps blocks of more than 32 MB anew in each
# solve, and faults in all of their pages.
MOST_BYTES = 4 * 2**20
LEAST_STATES, MOST_STATES = 16, 128


class AcceptedStepAdjoint(dfx.AbstractAdjoint):
    """Backpropagates through the accepted steps of a solve.

    The gradient is that of `diffrax.RecursiveCheckpointAdjoint`, the exact one of the numerical
    solution with its step sizes held fixed. It takes less time: the forward pass stores the state
    before each accepted step, and the reverse pass recomputes each of these steps and takes its
    vjp. It skips rejected steps and step-size control. Stages of explicit Runge-Kutta methods are
    unrolled. If times have a gradient, such as `t1`, rejected steps cannot be skipped.

    It works with all solvers, outputs and events, under `jax.vmap`, `jax.jit` and `jax.shard_map`,
    and with `max_steps=None`. Inside of `jax.shard_map`, pass parameters through `args`, or keep
    them in the terms, instead of closing over them.

    This is reverse mode: for `jax.jvp` use `diffrax.ForwardMode`, and for both modes
    `diffrax.DirectAdjoint`. `UnsafeBrownianPath` has no reverse mode.

    **Arguments:**

    - `checkpoints`: the number of states to store at a time. Beyond that, every second state is
        dropped, and the reverse pass makes some steps a third time. By default, there are 16 to 128
        states, according to their size.
    """

    checkpoints: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        number = self.checkpoints
        if number is not None and (type(number) is not int or number < 1):
            raise ValueError(
                f"`checkpoints` must be a Python integer of at least 1 or `None`, got {number!r}."
            )

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
        return max(LEAST_STATES, min(MOST_STATES, MOST_BYTES // max(size, 1)))


def _with_solver_state(state: State, solver_state: PyTree) -> State:
    return eqx.tree_at(lambda s: s.solver_state, state, solver_state, is_leaf=lambda x: x is None)
