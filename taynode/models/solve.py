"""A solver with its settings, as one argument of a model."""

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
from jaxtyping import Array, PRNGKeyArray, PyTree, Real

from .._types import Args, RealScalarLike, VectorField, Y
from ..adjoint import AcceptedStepAdjoint
from ..integration.grid import FixedGrid
from ..quadrature import AbstractQuadrature, Sampled
from ..registry import MAX_STEPS, TOLERANCE
from ..regularizers import AbstractRegularizer
from ..solve import diffeqsolve
from .steer import random_ends


CONTROLLER = dfx.PIDController(rtol=TOLERANCE, atol=TOLERANCE)


class Solve(eqx.Module):
    """A solver with its settings, as a function of a vector field and an initial state.

    Models take one as an argument. So a model can be trained on a fixed grid with a regularizer,
    and evaluated with adaptive steps and without.

    **Arguments:**

    - `solver`, `stepsize_controller`, `adjoint`, `max_steps`, `regularizer`, `throw`: as for
        `tn.diffeqsolve`.
    - `quadrature`: as for `tn.diffeqsolve`. States of models are batches along their first axis, so
        the default draws a random time for each row.
    - `num_steps`: the number of equal steps of a fixed grid, instead of a step-size controller.
    - `steer`: how far ends of solves and output times are moved at random, as a fraction of the
        interval since the previous output, between 0 and 1/2 for several output times. Calls need
        a `key`. This is STEER, for training.
    """

    solver: dfx.AbstractSolver = dfx.Dopri5()
    stepsize_controller: dfx.AbstractStepSizeController = CONTROLLER
    num_steps: int | None = eqx.field(static=True, default=None)
    adjoint: dfx.AbstractAdjoint = AcceptedStepAdjoint()
    max_steps: int | None = eqx.field(static=True, default=MAX_STEPS)
    regularizer: PyTree[AbstractRegularizer] = None
    quadrature: AbstractQuadrature = Sampled(batch_axis=0)
    throw: bool = eqx.field(static=True, default=True)
    steer: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        if not 0 <= self.steer < 1:
            raise ValueError(f"`steer` must be at least 0 and less than 1, got {self.steer!r}.")

    def __call__(
        self,
        vector_field: VectorField | dfx.AbstractTerm,
        y0: Y,
        args: Args = None,
        *,
        t0: RealScalarLike = 0.0,
        t1: RealScalarLike = 1.0,
        saveat: dfx.SaveAt = dfx.SaveAt(t1=True),
        step_ts: Real[Array, " steps"] | None = None,
        jump_ts: Real[Array, " jumps"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> dfx.Solution:
        """Solve from `t0` to `t1`.

        `vector_field` may also be a term of diffrax, such as that of a stochastic equation.
        Adaptive steps end at the times `step_ts` and `jump_ts`, if given. The vector field jumps at
        the latter.
        """
        # Time has the precision of the state. Python numbers would become float64 with x64.
        inexact = [x.dtype for x in jtu.tree_leaves(y0) if eqx.is_inexact_array(x)]
        if not inexact:
            raise TypeError("`y0` must have arrays of floating-point numbers.")
        dtype = jnp.result_type(*inexact)
        dtype = jnp.finfo(dtype).dtype  # real, if the state is complex
        t0, t1 = jnp.asarray(t0, dtype), jnp.asarray(t1, dtype)
        if self.steer:
            if key is None:
                raise ValueError("`steer` draws random times, so the solve needs `key=`.")
            steer_key, key = jr.split(key)
            t1, saveat = random_ends(t0, t1, saveat, self.steer, key=steer_key)
        controller, max_steps = self.stepsize_controller, self.max_steps
        if self.num_steps is not None:
            controller = FixedGrid(jnp.linspace(t0, t1, self.num_steps + 1))
            max_steps = self.num_steps
        elif isinstance(controller, dfx.AbstractAdaptiveStepSizeController) and (
            step_ts is not None or jump_ts is not None
        ):
            cast = lambda ts: None if ts is None else jnp.asarray(ts, dtype)
            controller = dfx.ClipStepSizeController(controller, cast(step_ts), cast(jump_ts))
        is_term = isinstance(vector_field, dfx.AbstractTerm)
        return diffeqsolve(
            vector_field if is_term else dfx.ODETerm(vector_field),
            self.solver,
            t0,
            t1,
            None,
            y0,
            args,
            saveat=saveat,
            stepsize_controller=controller,
            adjoint=self.adjoint,
            max_steps=max_steps,
            regularizer=self.regularizer,
            quadrature=self.quadrature,
            throw=self.throw,
            key=key,
        )
