"""What terms describe: the slope of a path, and its noise."""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import jax.tree_util as jtu
import lineax as lx
from jax.flatten_util import ravel_pytree

from ._types import Args, RealScalarLike, Y


class SummedField(eqx.Module):
    """The sum of the slopes of several terms."""

    terms: tuple[dfx.ODETerm, ...]

    def __call__(self, t: RealScalarLike, y: Y, args: Args) -> Y:
        """Compute dy/dt."""
        first, *rest = [term.vf(t, y, args) for term in self.terms]
        return jtu.tree_map(lambda *slopes: sum(slopes[1:], slopes[0]), first, *rest)


def slope_of(terms: Any) -> dfx.ODETerm:
    """The term of the slope dy/dt along the path, which regularizers are evaluated with.

    It is that of an ordinary equation, f(t, y, args) dX/dt if a differentiable control X drives the
    equation, and the sum of such slopes for a `MultiTerm`. Noise has no slope, so that of a
    stochastic equation is its drift.
    """
    single = terms.terms if isinstance(terms, dfx.MultiTerm) else (terms,)
    for term in single:
        _check(term)
    smooth = [term for term in single if not is_noise(term)]
    if not smooth:
        raise _no_derivative(single[0])
    slopes = [term if isinstance(term, dfx.ODETerm) else term.to_ode() for term in smooth]
    return slopes[0] if len(slopes) == 1 else dfx.ODETerm(SummedField(tuple(slopes)))


def noise_of(terms: Any) -> list[dfx.ControlTerm]:
    """The terms that Brownian motion drives."""
    return [x for x in jtu.tree_leaves(terms, is_leaf=_is_single) if is_noise(x)]


def is_noise(term: Any) -> bool:
    """Whether Brownian motion drives a term."""
    is_control = isinstance(term, dfx.ControlTerm)
    return is_control and isinstance(term.control, dfx.AbstractBrownianPath)


def variances(term: dfx.ControlTerm, t: RealScalarLike, y: Y, args: Args) -> Y:
    """The variance that noise adds to each element of the state, per unit of time.

    For a diffusion matrix g it is the diagonal of $g g^T$.
    """
    diffusion = term.vf(t, y, args)
    square = lambda x: x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2
    if isinstance(diffusion, lx.DiagonalLinearOperator):
        return jtu.tree_map(square, diffusion.diagonal)
    if isinstance(diffusion, lx.AbstractLinearOperator):
        _, unravel = ravel_pytree(y)
        return unravel(jnp.sum(square(diffusion.as_matrix()), axis=1))
    each = lambda g, x: jnp.sum(square(g), axis=tuple(range(jnp.ndim(x), g.ndim)))
    return jtu.tree_map(each, diffusion, y)


class Forward(dfx.AbstractTerm):
    """A term in the time t * direction, in which solvers step forward, as in diffrax.

    diffrax does the same with a class that is not public.
    """

    term: Any
    direction: Any

    def vf(self, t, y, args):
        """That of the term."""
        return self.term.vf(t * self.direction, y, args)

    def contr(self, t0, t1, **kwargs):
        """The increment of the term in the direction of the solve."""
        forward = self.direction == 1
        start, end = jnp.where(forward, t0, -t1), jnp.where(forward, t1, -t0)
        increment = self.term.contr(start, end, **kwargs)
        return jtu.tree_map(lambda x: self.direction.astype(x.dtype) * x, increment)

    def prod(self, vf, control):
        """That of the term."""
        return self.term.prod(vf, control)

    def vf_prod(self, t, y, args, control):
        """That of the term."""
        return self.term.vf_prod(t * self.direction, y, args, control)


def forward(terms: Any, direction: Any) -> Any:
    """Terms in the time t * direction."""
    return jtu.tree_map(lambda term: Forward(term, direction), terms, is_leaf=_is_single)


def _is_single(x: Any) -> bool:
    return isinstance(x, dfx.AbstractTerm) and not isinstance(x, dfx.MultiTerm)


def _check(term: Any) -> None:
    """Raise an error if a term has no slope and is not noise."""
    if not isinstance(term, dfx.ODETerm | dfx.ControlTerm):
        raise TypeError(
            "`regularizer` needs `terms` to be an `ODETerm`, a `ControlTerm`, or a `MultiTerm` of "
            f"them, got `{type(term).__name__}`. Write an equation that is split in several terms "
            "as one `ODETerm`, whose vector field is their sum."
        )
    # `ControlTerm.to_ode()` keeps its term.
    if isinstance(term, dfx.ODETerm):
        term = getattr(term.vector_field, "control_term", None)
        if is_noise(term):
            raise _no_derivative(term)
    if not isinstance(term, dfx.ControlTerm) or is_noise(term):
        return
    control: Any = term.control
    try:
        eqx.filter_eval_shape(control.derivative, control.t0)
    except Exception as error:
        raise TypeError(
            "`regularizer` needs a control with a derivative, which that of this `ControlTerm` "
            "does not compute. Pass an interpolation such as `diffrax.CubicInterpolation`, or a "
            "`diffrax.AbstractPath` of your own with `evaluate(t)`, instead of a function of two "
            "times."
        ) from error


def _no_derivative(term: Any) -> TypeError:
    return TypeError(
        f"`regularizer` needs a slope, and a path that `{type(term.control).__name__}` drives has "
        "none. Pass `MultiTerm(ODETerm(drift), ControlTerm(diffusion, path))`: then the drift is "
        "penalized, or the noise with `tn.DiffusionNorm()`, or the error of steps with "
        "`tn.ErrorEstimate()`. Or interpolate the control with `diffrax.LinearInterpolation`."
    )
