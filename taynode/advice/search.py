"""Which solver, tolerance and order suit a vector field."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TYPE_CHECKING, TypeAlias

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

from .._types import Args, Arrays, RealScalarLike, VectorField
from ..models import Solve
from ..registry import MAX_STEPS
from ..solvers import CashKarp, RKFehlberg45, TanakaYamashita7
from ..taylor.solution import check_vector_field
from .advice import Advice, Audit
from .measure import cheapest_tolerance, measure, Measured, name_of, work_precision
from .order import best_order, order_correlations
from .problem import adaptive, Exact, InitialValues, solve_exactly
from .stiffness import stiffness_of


if TYPE_CHECKING:
    Field: TypeAlias = VectorField
else:
    # At run time, a term gets an error of this library, which says what to pass.
    Field = Any


EXPLICIT = (
    dfx.Heun(),
    dfx.Bosh3(),
    dfx.Tsit5(),
    dfx.Dopri5(),
    CashKarp(),
    RKFehlberg45(),
    TanakaYamashita7(),
    dfx.Dopri8(),
)
IMPLICIT = (dfx.Kvaerno3(), dfx.Kvaerno5())


def advise(
    vector_field: Field,
    y0s: Arrays,
    t0: RealScalarLike,
    t1: RealScalarLike,
    args: Args = None,
    *,
    rtol: float = 1e-3,
    atol: float = 1e-4,
    present: Solve | None = None,
    loss: Callable[[Arrays], RealScalarLike] | None = None,
    solvers: Sequence[dfx.AbstractSolver] | None = None,
    max_steps: int = MAX_STEPS,
    on_progress: Callable[[str], None] | None = None,
) -> Advice:
    """Find the cheapest solver and tolerance that meet the requested accuracy.

    Each solver is tried with tolerances from loose to tight, on each initial state alone. Its true
    error is the distance of the final states from those of a much tighter solve in double
    precision. Solvers are ranked by evaluations, since run times depend on the machine. If
    stability limits the steps, implicit solvers are tried, too, and all are ranked by time: an
    implicit step costs more than its evaluations.

    ```python
    advice = tn.advise(model.vector_field, y0s, 0.0, 1.0, rtol=1e-3, atol=1e-4)
    print(advice)
    advice.plot()
    sol = advice.solve(model.vector_field, y0)
    ```

    **Arguments:**

    - `vector_field`: a function `(t, y, args) -> dy/dt` of a single sample.
    - `y0s`: initial states, with samples along the first axis of each leaf. Some dozens will do.
    - `t0`, `t1`, `args`: as for `tn.diffeqsolve`.
    - `rtol`, `atol`: the accuracy to ask for: the error of the final state is to be at most
        `atol + rtol * |y|`, as a root mean square over components and samples.
    - `present`: the setting in use, which is audited. One with `num_steps` is a fixed grid.
    - `loss`: a function of the final states of all samples, for the audit.
    - `solvers`: adaptive solvers to try; by default explicit ones of orders 2 to 8.
    - `max_steps`: the number of steps after which a solve fails.
    - `on_progress`: called with the name of each solver before it is measured.
    """
    check_vector_field(vector_field)
    _check(y0s, rtol, atol)
    y0s = jtu.tree_map(lambda y: jnp.asarray(y, jnp.result_type(y, 0.0)), y0s)
    notify = on_progress or (lambda name: None)
    problem = InitialValues(vector_field, y0s, t0, t1, args)
    _check_field(problem)
    notify("exact solutions")
    exact = solve_exactly(problem, rtol, atol)
    courses: dict[str, list[Measured]] = {}

    def try_all(chosen: Sequence[dfx.AbstractSolver]) -> None:
        for solver in chosen:
            name = name_of(solver)
            if name in courses:
                raise ValueError(f"`solvers` has {name} twice.")
            notify(name)
            courses[name] = work_precision(problem, exact, solver, max_steps=max_steps)

    try_all(EXPLICIT if solvers is None else solvers)
    notify("stiffness")
    usual = adaptive(dfx.Tsit5(), rtol, atol, max_steps=16 * max_steps)
    stiffness = stiffness_of(problem, usual)
    if stiffness.is_stiff and solvers is None:
        try_all(IMPLICIT)
    accurate = [m for m in map(cheapest_tolerance, courses.values()) if m is not None]
    cost = (lambda m: m.seconds) if stiffness.is_stiff else (lambda m: m.nfe)
    best = min(accurate, key=cost, default=None)
    notify("orders")
    correlations = {} if best is None else order_correlations(problem, best.solve)
    return Advice(
        courses=courses,
        best=best,
        order=best_order(correlations),
        correlations=correlations,
        stiffness=stiffness,
        audit=None if present is None else audit(problem, exact, present, loss),
        rtol=rtol,
        atol=atol,
    )


def _check_field(problem: InitialValues) -> None:
    """Evaluate the shape of the vector field on one sample."""
    sample = jtu.tree_map(lambda y: jnp.asarray(y)[0], problem.y0s)
    try:
        eqx.filter_eval_shape(problem.vector_field, problem.t0, sample, problem.args)
    except Exception as error:
        error.add_note(
            "`vector_field(t, y, args)` fails on the first sample of `y0s`, of shape "
            f"{jtu.tree_map(jnp.shape, sample)}. `y0s` has samples along its first axis, and the "
            "vector field takes one sample: pass `y0[None]` for a single initial state. For the "
            "field of a batch, pass `lambda t, y, args: field(t, y[None], args)[0]`. For one that "
            "needs `args`, pass them."
        )
        raise


def _check(y0s: Arrays, rtol: float, atol: float) -> None:
    leaves = jtu.tree_leaves(y0s)
    sizes = {jnp.shape(x)[:1] for x in leaves}
    if len(sizes) != 1 or sizes in ({()}, {(0,)}):
        raise ValueError(
            "`y0s` must have samples along the first axis of each leaf, got leaves of shapes "
            f"{[jnp.shape(x) for x in leaves]}."
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value > 0:
            raise ValueError(f"`{name}` must be positive, got {value}.")


def audit(
    problem: InitialValues,
    exact: Exact,
    present: Solve,
    loss: Callable[[Arrays], RealScalarLike] | None,
) -> Audit:
    """Compare the setting in use with the exact solution."""
    # What training alone needs is left out, and a solve that fails is a result.
    present = dataclasses.replace(
        present, adjoint=dfx.ForwardMode(), regularizer=None, steer=0.0, throw=False
    )
    found = measure(problem, exact, present)
    if loss is None:
        return Audit(found, None, None)
    y1s = problem.solve(present).y1s
    return Audit(found, float(loss(y1s)), float(loss(_unflat(exact.y1s, y1s))))


def _unflat(flat: np.ndarray, like: Arrays) -> Arrays:
    """The leaves of a pytree from their flat values."""
    leaves, structure = jtu.tree_flatten(like)
    ends = np.cumsum([x[0].size for x in leaves])[:-1]
    parts = np.split(flat, ends, axis=1)
    shaped = [jnp.asarray(p.reshape(x.shape), x.dtype) for p, x in zip(parts, leaves, strict=True)]
    return jtu.tree_unflatten(structure, shaped)
