"""Adams-Bashforth-Moulton methods of variable step and order."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx
from jax import lax

from .._types import Scalar
from .adams_controller import (
    AdamsController as AdamsController,
    AdamsError as AdamsError,
    scaled_norm,
)
from .adams_interpolation import AdamsInterpolation, combine, newton_integrals, quotient


class AdamsState(NamedTuple):
    """What is known of the past. It is free of the direction of time, as the slopes are.

    **Fields:**

    - `gaps`: time since the last points, beginning with 0; from the start on, the time since it.
    - `differences`: the modified divided differences of the slopes, along a first axis.
    - `order`: the number of past slopes that the next prediction uses.
    - `num_steps`: accepted steps since the start; differences above that order are zero.
    - `starting`: whether the order still rises with every step.
    """

    gaps: Any
    differences: Any
    order: Any
    num_steps: Any
    starting: Any


class Adams(dfx.AbstractAdaptiveSolver):
    """Adams' method of variable step and order, from 1 to 12, with variable coefficients.

    It predicts by the polynomial through the last k slopes, evaluates, corrects with the slope
    found, and evaluates again (PECE): two evaluations an attempted step, whatever the order, and one
    at the start. The correction has order k + 1; the error estimate is that of order k. Suited for
    smooth problems, tight tolerances and costly vector fields. Dense output has the order of the
    step.

    The order is chosen by comparing errors, so the solver needs to know the tolerances and the norm,
    and its step-size controller the order:

    ```python
    solver = tn.solvers.Adams().with_tolerances(rtol, atol)
    controller = tn.solvers.AdamsController(dfx.PIDController(rtol, atol))
    dfx.diffeqsolve(term, solver, t0, t1, dt0, y0, stepsize_controller=controller)
    ```

    `tn.diffeqsolve` does that by itself. Behind a jump of the vector field, each attempt of a step
    begins anew, which takes one evaluation more.

    References: L. F. Shampine and M. K. Gordon, Computer Solution of Ordinary Differential Equations,
    1975; Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section III.5.

    **Arguments:**

    - `max_order`: the largest k, from 1 to 12.
    - `rtol`, `atol`, `norm`: as for `diffrax.PIDController`; used to choose the order.
    """

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., AdamsInterpolation]] = AdamsInterpolation

    max_order: int = eqx.field(default=12, static=True)
    rtol: Any = None
    atol: Any = None
    norm: Any = None

    def __check_init__(self):
        if not 1 <= self.max_order <= 12:
            raise ValueError(f"`max_order` must be from 1 to 12, got {self.max_order}.")

    def with_tolerances(
        self, rtol: Scalar, atol: Scalar, norm: Callable[[Any], Any] = optx.rms_norm
    ) -> "Adams":
        """The same solver, choosing its order for these tolerances."""
        return Adams(self.max_order, rtol, atol, norm)

    def order(self, terms):
        """The largest order; the one in use varies."""
        del terms
        return self.max_order

    def func(self, terms, t0, y0, args):
        """The vector field."""
        return terms.vf(t0, y0, args)

    def init(self, terms, t0, t1, y0, args):
        """Begin with an evaluation at the start."""
        return self.init_from_slope(terms, t0, t1, y0, args, self.func(terms, t0, y0, args))

    def init_from_slope(
        self, terms: Any, t0: Scalar, t1: Scalar, y0: Any, args: Any, f0: Any
    ) -> AdamsState:
        """Begin with the value of `func` at the start, if that is known already."""
        del t1, y0, args
        is_control = lambda x: isinstance(x, dfx.ControlTerm)
        if any(map(is_control, jtu.tree_leaves(terms, is_leaf=is_control))):
            raise ValueError("`Adams` needs slopes in time: pass `term.to_ode()`.")
        dtype = jnp.result_type(t0, 0.0)

        def differences(f):
            f = jnp.asarray(f)
            return jnp.zeros((self.max_order + 1, *f.shape), f.dtype).at[0].set(f)

        return AdamsState(
            gaps=jnp.zeros(self.max_order + 1, dtype),
            differences=jtu.tree_map(differences, f0),
            order=jnp.array(1, jnp.int32),
            num_steps=jnp.array(0, jnp.int32),
            starting=jnp.array(True),
        )

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        """Predict, evaluate, correct, evaluate; then choose the order of the next step."""
        if self.rtol is None or self.atol is None:
            raise ValueError(
                "`Adams` needs tolerances to choose its order: use `tn.diffeqsolve`, or pass them, "
                "as in `Adams(rtol=..., atol=...)`."
            )
        state = self._restart(terms, t0, y0, args, solver_state, made_jump)
        order, orders = state.order, jnp.arange(self.max_order + 1, dtype=jnp.int32)
        unit = terms.contr(jnp.zeros_like(t0), jnp.ones_like(t0))
        move = lambda slopes: terms.prod(slopes, unit)  # in the direction of time
        add = lambda y, slopes: jtu.tree_map(jnp.add, y, move(slopes))

        # The differences as the polynomial at t1 has them, and integrals of its basis functions.
        step = t1 - t0
        gaps = state.gaps.astype(step.dtype)
        growth = jnp.cumprod(quotient(step + gaps[:-1], gaps[1:]))
        growth = jnp.concatenate([jnp.ones_like(growth[:1]), growth])
        past = jtu.tree_map(lambda d: _rows(growth, d) * d, state.differences)
        integrals = newton_integrals(gaps, step, step)

        used = (orders < order).astype(step.dtype)
        prediction = combine(integrals[:-1] * used, past)
        predicted = add(y0, prediction)
        f_predicted = self.func(terms, t1, predicted, args)
        last = jtu.tree_map(jnp.subtract, f_predicted, combine(used, past))
        correction = jtu.tree_map(lambda d: integrals[order].astype(d.dtype) * d, last)
        y1 = add(predicted, correction)
        f1 = self.func(terms, t1, y1, args)

        # The difference of order j is the slope less the sum of all past differences below j.
        sums = jtu.tree_map(lambda d: jnp.cumsum(d, 0), past)
        sums = jtu.tree_map(lambda d: jnp.concatenate([jnp.zeros_like(d[:1]), d]), sums)
        errors = self._errors(move, order, integrals, sums, f_predicted, f1)
        sizes = jax.vmap(lambda e: scaled_norm(e, *lax.stop_gradient((y0, y1)), *self._scale()))(
            errors
        )
        next_order, raised, starting = self._choose_order(state, sizes)

        known = orders <= state.num_steps + 1
        differences = jtu.tree_map(
            lambda f, s: jnp.where(_rows(known, s[:-1]), f - s[:-1], 0), f1, sums
        )
        next_state = AdamsState(
            gaps=jnp.concatenate([jnp.zeros_like(gaps[:1]), gaps[:-1] + step]).astype(
                state.gaps.dtype
            ),
            differences=differences,
            order=next_order,
            num_steps=jnp.minimum(state.num_steps + 1, self.max_order),
            starting=starting,
        )
        # A rejected step is repeated with the order it had.
        power = 1 + jnp.where(sizes[2] < 1, next_order, order)
        y_error = AdamsError(
            jtu.tree_map(lambda e: e[2], errors),
            power.astype(step.dtype),
            raised.astype(step.dtype),
        )
        end = (orders == order).astype(step.dtype)
        coefficients = jtu.tree_map(
            lambda d, e: _rows(used, d) * d + _rows(end, d) * e, past, last
        )
        dense_info = dict(y0=y0, gaps=gaps[:-1], coefficients=jax.vmap(move)(coefficients))
        return y1, y_error, dense_info, next_state, dfx.RESULTS.successful

    def _restart(self, terms, t0, y0, args, state: AdamsState, made_jump) -> AdamsState:
        """Forget the past behind a jump of the vector field."""
        if made_jump is False:
            return state
        made_jump = jnp.asarray(made_jump)
        slope = lax.cond(
            eqxi.unvmap_any(made_jump),
            lambda: self.func(terms, t0, y0, args),
            lambda: jtu.tree_map(lambda d: d[0], state.differences),
        )
        fresh = self.init_from_slope(terms, t0, t0, y0, args, slope)
        return jtu.tree_map(
            lambda new, old: jnp.where(made_jump, new.astype(old.dtype), old), fresh, state
        )

    def _scale(self):
        return self.rtol, self.atol, optx.rms_norm if self.norm is None else self.norm

    def _errors(self, move, order, integrals, sums, f_predicted, f1):
        """Errors of the orders k - 2, ..., k + 1, the last one with the slope after correction.

        Each is what the next order would add, were it used. They carry no gradient.
        """
        integrals, sums, f_predicted, f1 = lax.stop_gradient((integrals, sums, f_predicted, f1))
        orders = jnp.clip(order + jnp.arange(-2, 2, dtype=order.dtype), 1, self.max_order + 1)
        weights = integrals[orders] - integrals[orders - 1]

        def error(s, f, g):
            return _rows(weights, s) * (jnp.stack([f, f, f, g]) - s[orders])

        return jax.vmap(move)(jtu.tree_map(error, sums, f_predicted, f1))

    def _choose_order(self, state: AdamsState, sizes) -> tuple[Any, Any, Any]:
        """The order with the least error, by the rules of Shampine and Gordon.

        **Returns:**

        The next order, whether it has been raised for its error, and whether the start goes on.
        """
        order = state.order
        infinity = jnp.full((), jnp.inf, sizes.dtype)
        two_below = jnp.where(order > 2, sizes[0], 0)
        below = jnp.where(order > 1, sizes[1], infinity)
        here = sizes[2]
        can_rise = (order < self.max_order) & (state.num_steps >= order)
        above = jnp.where(can_rise, sizes[3], infinity)
        # Between the first two orders, a change must pay.
        lower = jnp.where(
            order > 2, jnp.maximum(below, two_below) <= here, below <= 0.5 * here
        )
        starting = state.starting & jnp.invert(lower) & (order < self.max_order)
        lower = (lower | (below <= jnp.minimum(here, above))) & (order > 1)
        raised = above < jnp.where(order > 1, 1, 0.5).astype(sizes.dtype) * here
        raised = raised & jnp.invert(lower | starting)
        lower = lower & jnp.invert(starting)
        change = (raised | starting).astype(order.dtype) - lower.astype(order.dtype)
        return order + change, raised, starting


def _rows(weights, leaf):
    """Weights along the first axis of a leaf."""
    return weights.reshape(-1, *(1,) * (leaf.ndim - 1)).astype(
        leaf.dtype if weights.dtype != bool else bool
    )
