"""Adams-Bashforth-Moulton methods of variable step and order."""

from typing import ClassVar, NamedTuple

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from .._types import Args, Arrays, BoolScalarLike, Norm, RealScalarLike, Y
from .adams_controller import (
    AdamsController as AdamsController,
    AdamsError as AdamsError,
    scaled_norm,
)
from .adams_interpolation import (
    AdamsInterpolation,
    along_first,
    combine,
    newton_integrals,
    quotient,
)


class AdamsState(NamedTuple):
    """The past slopes. They do not depend on the direction of time.

    **Fields:**

    - `gaps`: the time since each of the last points, or since the start for those before it.
    - `differences`: the scaled divided differences of the slopes, with orders along the first axis.
    - `order`: the number k of slopes that the next prediction uses.
    - `num_steps`: the number of accepted steps since the start. Differences above are zero.
    - `starting`: whether the order still rises with each step.
    """

    gaps: Float[Array, " max_order+1"]
    differences: Arrays
    order: Int[Array, ""]
    num_steps: Int[Array, ""]
    starting: Bool[Array, ""]


class Adams(dfx.AbstractAdaptiveSolver):
    """Adams' method of variable step and order, from 1 to 12, with variable coefficients.

    It predicts by the polynomial through the last k slopes, evaluates, corrects with the new slope,
    and evaluates again (PECE). This takes two evaluations per attempted step at any order, and one
    at the start. The correction has order k + 1; the error estimate is that of order k. Dense
    output has the order of the step. It is suited for smooth problems, tight tolerances and
    expensive vector fields. For stiff problems it is no better than other explicit methods.

    The solver chooses the order by comparing errors, so it needs the tolerances and the norm. The
    step-size controller needs the order:

    ```python
    solver = tn.solvers.Adams().with_tolerances(rtol, atol)
    controller = tn.solvers.AdamsController(dfx.PIDController(rtol, atol))
    dfx.diffeqsolve(term, solver, t0, t1, dt0, y0, stepsize_controller=controller)
    ```

    `tn.diffeqsolve` does that by itself. After a jump of the vector field, each attempted step
    starts again at order 1, which takes one more evaluation.

    References: Shampine and Gordon, Computer Solution of Ordinary Differential Equations, 1975;
    Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section III.5.

    **Arguments:**

    - `max_order`: the largest k, from 1 to 12.
    - `rtol`, `atol`, `norm`: as for `diffrax.PIDController`; used to choose the order.
    """

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar = AdamsInterpolation

    max_order: int = eqx.field(default=12, static=True)
    rtol: RealScalarLike | None = None
    atol: RealScalarLike | None = None
    norm: Norm | None = None

    def __check_init__(self):
        if not 1 <= self.max_order <= 12:
            raise ValueError(f"`max_order` must be from 1 to 12, got {self.max_order}.")

    def with_tolerances(
        self, rtol: RealScalarLike, atol: RealScalarLike, norm: Norm = optx.rms_norm
    ) -> "Adams":
        """A copy of the solver that chooses its order for these tolerances."""
        return Adams(self.max_order, rtol, atol, norm)

    def order(self, terms):
        """The largest order. The order of a step is smaller or equal."""
        del terms
        return self.max_order

    def func(self, terms, t0, y0, args):
        """Evaluate the vector field."""
        return terms.vf(t0, y0, args)

    def init(self, terms, t0, t1, y0, args):
        """Evaluate the vector field at the start."""
        return self.init_from_slope(terms, t0, t1, y0, args, self.func(terms, t0, y0, args))

    def init_from_slope(
        self,
        terms: PyTree[dfx.AbstractTerm],
        t0: RealScalarLike,
        t1: RealScalarLike,
        y0: Y,
        args: Args,
        f0: Arrays,
    ) -> AdamsState:
        """Compute the first state from `f0`, the value of `func` at the start."""
        del t1, y0, args
        is_control = lambda x: isinstance(x, dfx.ControlTerm)
        if any(map(is_control, jtu.tree_leaves(terms, is_leaf=is_control))):
            raise ValueError("`Adams` needs `terms` without a `ControlTerm`: pass `term.to_ode()`.")
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
        """Predict, evaluate, correct, evaluate, and choose the order of the next step."""
        rtol, atol = self.rtol, self.atol
        if rtol is None or atol is None:
            raise ValueError(
                "`Adams` needs tolerances to choose its order: use `tn.diffeqsolve`, or pass them, "
                "as in `Adams(rtol=..., atol=...)`."
            )
        state = self._restart(terms, t0, y0, args, solver_state, made_jump)
        order, orders = state.order, jnp.arange(self.max_order + 1, dtype=jnp.int32)
        # Slopes are stored as the vector field returns them. This gives them the direction of time.
        unit = terms.contr(jnp.zeros_like(t0), jnp.ones_like(t0))
        move = lambda slope: terms.prod(slope, unit)
        add = lambda y, slope: jtu.tree_map(jnp.add, y, move(slope))

        # The past differences, rescaled for the end of this step.
        step = jnp.asarray(t1 - t0)
        gaps = state.gaps.astype(step.dtype)
        growth = jnp.cumprod(quotient(step + gaps[:-1], gaps[1:]))
        growth = jnp.concatenate([jnp.ones_like(growth[:1]), growth])
        past = jtu.tree_map(lambda d: along_first(growth, d) * d, state.differences)

        integrals = newton_integrals(gaps, step, step)
        used = (orders < order).astype(step.dtype)
        predicted = add(y0, combine(integrals[:-1] * used, past))
        f_predicted = self.func(terms, t1, predicted, args)
        newest = jtu.tree_map(jnp.subtract, f_predicted, combine(used, past))
        y1 = add(predicted, jtu.tree_map(lambda d: integrals[order].astype(d.dtype) * d, newest))
        f1 = self.func(terms, t1, y1, args)

        # The new difference of order j is the slope less the past differences of orders below j.
        sums = jtu.tree_map(_sums_below, past)
        known = orders <= state.num_steps + 1
        new = lambda f, s: jnp.where(along_first(known, s[1:]), f - s[:-1], 0)
        errors = _errors(order, integrals, *lax.stop_gradient((sums, f_predicted, f1)))
        errors = jax.vmap(move)(errors)
        norm = optx.rms_norm if self.norm is None else self.norm
        ends = lax.stop_gradient((y0, y1))
        sizes = jax.vmap(lambda e: scaled_norm(e, *ends, rtol, atol, norm))(errors)
        next_order, raised, starting = _choose_order(state, sizes, self.max_order)
        next_state = AdamsState(
            gaps=jnp.pad(gaps[:-1] + step, (1, 0)).astype(state.gaps.dtype),
            differences=jtu.tree_map(new, f1, sums),
            order=next_order,
            num_steps=jnp.minimum(state.num_steps + 1, self.max_order),
            starting=starting,
        )
        # A rejected step is repeated at the order it had.
        power = 1 + jnp.where(sizes[2] < 1, next_order, order)
        y_error = AdamsError(
            error=jtu.tree_map(lambda e: e[2], errors),
            order=power.astype(step.dtype),
            raised=raised.astype(step.dtype),
        )
        last = (orders == order).astype(step.dtype)
        joined = lambda d, e: along_first(used, d) * d + along_first(last, d) * e
        coefficients = jax.vmap(move)(jtu.tree_map(joined, past, newest))
        dense_info = dict(y0=y0, gaps=gaps[:-1], coefficients=coefficients)
        return y1, y_error, dense_info, next_state, dfx.RESULTS.successful

    def _restart(
        self, terms, t0, y0, args, state: AdamsState, made_jump: BoolScalarLike
    ) -> AdamsState:
        """Forget the past slopes after a jump of the vector field."""
        if made_jump is False:
            return state
        made_jump = jnp.asarray(made_jump)
        slope = lax.cond(
            eqxi.unvmap_any(made_jump),
            lambda: self.func(terms, t0, y0, args),
            lambda: jtu.tree_map(lambda d: d[0], state.differences),
        )
        fresh = self.init_from_slope(terms, t0, t0, y0, args, slope)
        choose = lambda new, old: jnp.where(made_jump, new.astype(old.dtype), old)
        return jtu.tree_map(choose, fresh, state)


def _sums_below(differences: Shaped[Array, "n ..."]) -> Shaped[Array, "n+1 ..."]:
    """Sums of the first 0, ..., n entries of the first axis."""
    empty = jnp.zeros_like(differences[:1])
    return jnp.concatenate([empty, jnp.cumsum(differences, 0)])


def _errors(
    order: Int[Array, ""],
    integrals: Float[Array, " n"],
    sums: Arrays,
    f_predicted: Arrays,
    f1: Arrays,
) -> Arrays:
    """The errors of the orders k - 2, ..., k + 1, along the first axis.

    The error of an order is the change by the next one. The last error uses the corrected slope.
    """
    orders = order + jnp.arange(-2, 2, dtype=order.dtype)
    orders = jnp.clip(orders, 1, len(integrals) - 1)
    integrals = lax.stop_gradient(integrals)
    # The change goes to zero for steps much shorter than those before, and would miss a jump of the
    # slope. With constant steps, the change is above this bound.
    weights = jnp.abs(integrals[orders] - integrals[orders - 1])
    weights = jnp.maximum(weights, integrals[orders] / 50)

    def error(s, f, g):
        return along_first(weights, s) * (jnp.stack([f, f, f, g]) - s[orders])

    return jtu.tree_map(error, sums, f_predicted, f1)


def _choose_order(
    state: AdamsState, sizes: Float[Array, " 4"], max_order: int
) -> tuple[Int[Array, ""], Bool[Array, ""], Bool[Array, ""]]:
    """Choose the order of the next step, by the rules of Shampine and Gordon.

    **Arguments:**

    - `sizes`: the errors of the orders k - 2, ..., k + 1, in units of the tolerance.

    **Returns:**

    The order, whether it is higher because of a smaller error, and the next `starting`.
    """
    order, unknown = state.order, jnp.full((), jnp.inf, sizes.dtype)
    two_below = jnp.where(order > 2, sizes[0], 0)
    below = jnp.where(order > 1, sizes[1], unknown)
    here = sizes[2]
    above = jnp.where((order < max_order) & (state.num_steps >= order), sizes[3], unknown)
    # Between the first two orders, a change must halve the error.
    worth = jnp.where(order > 2, 1, 0.5).astype(sizes.dtype)
    lower = jnp.maximum(below, two_below) <= worth * here
    starting = state.starting & jnp.invert(lower) & (order < max_order)
    lower = (lower | (below <= jnp.minimum(here, above))) & jnp.invert(starting) & (order > 1)
    worth = jnp.where(order > 1, 1, 0.5).astype(sizes.dtype)
    raised = (above < worth * here) & jnp.invert(starting | lower)
    change = (raised | starting).astype(order.dtype) - lower.astype(order.dtype)
    return order + change, raised, starting
