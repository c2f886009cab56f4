"""The state with its running penalty, and the vector field that moves both."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import optimistix as optx

from ._types import Args, Key, Scalar, Y
from .regularizers.base import combine_rates, is_regularizer


class AugmentedState(NamedTuple):
    """A state and the penalty that its path has collected."""

    y: Y
    penalty: Any

    @property
    def plain_part(self) -> Any:
        """The state."""
        return self.y


class AugmentedField(eqx.Module):
    """The vector field of the pair (y, penalty). What it holds are pytrees, never closures.

    It keeps the term of the state, which brings what the vector field returns to the shape and type
    of the state.
    """

    term: dfx.ODETerm
    regularizer: Any
    states: list[Any]

    @property
    def plain_part(self) -> Any:
        """The vector field of the state."""
        return self.term.vector_field

    def __call__(self, t: Scalar, state: tuple[Y, Any], args: Args) -> tuple[Y, Any]:
        """The slope of the state and the rate of the penalty."""
        y, penalty = state
        slope, rates = combine_rates(self.regularizer, self.term.vf, t, y, args, self.states)
        if penalty is not None:
            rates = jtu.tree_map(lambda r, p: r.astype(jnp.result_type(p)), rates, penalty)
        pair = slope, rates
        return AugmentedState(*pair) if isinstance(state, AugmentedState) else pair


class CostateField(eqx.Module):
    """`AugmentedField` with a penalty that stands still, and derivatives as if it moved.

    The penalty never influences the state, so its gradient needs the rate at the points that the
    solver visits, but not its integral.
    """

    augmented: AugmentedField

    @property
    def plain_part(self) -> Any:
        """The vector field of the state."""
        return self.augmented.plain_part

    def __call__(self, t: Scalar, state: tuple[Y, Any], args: Args) -> tuple[Y, Any]:
        """The slope of the state, and zero."""
        return _move_plain((self.augmented, t, state, args))


def _evaluate(operands: tuple[AugmentedField, Scalar, tuple[Y, Any], Args]) -> tuple[Y, Any]:
    field, t, state, args = operands
    return field(t, state, args)


@eqx.filter_custom_vjp
def _move_plain(operands):
    field, t, (y, penalty), args = operands
    zero = nothing_of((field, y, args))
    still = jtu.tree_map(lambda p: jnp.zeros_like(p) + zero.astype(p.dtype), penalty)
    return AugmentedState(field.term.vf(t, y, args), still)


@_move_plain.def_fwd
def _forward(perturbed, operands):
    del perturbed
    return _move_plain(operands), None


@_move_plain.def_bwd
def _backward(residuals, cotangent, perturbed, operands):
    del residuals, perturbed
    out, transpose = eqx.filter_vjp(_evaluate, operands)
    zeros = lambda x, ct: jnp.zeros_like(x) if ct is None else ct
    cotangent = jtu.tree_map(zeros, out, cotangent, is_leaf=lambda x: x is None)
    return transpose(cotangent)[0]


def initial_states(regularizer: Any, y0: Y, args: Args, key: Key | None) -> list[Any]:
    """What each regularizer draws or computes once per solve."""
    leaves = jtu.tree_leaves(regularizer, is_leaf=is_regularizer)
    keys = [None] * len(leaves) if key is None else list(jax.random.split(key, len(leaves)))
    return [leaf.init(y0, args, key=k) for leaf, k in zip(leaves, keys, strict=True)]


def nothing_of(tree: Any) -> Scalar:
    """A zero that belongs to all arrays of a pytree: under `jax.vmap`, each sample has its own.

    A zero that depends on nothing would be shared by all samples, and so would be its cotangent.
    """
    leaves = jtu.tree_leaves(eqx.filter(tree, eqx.is_inexact_array))
    empty = [jnp.sum(jnp.real(leaf).reshape(-1)[:0]).astype(float) for leaf in leaves]
    return sum(empty, jnp.zeros((), float))


def zero_penalty(field: AugmentedField, t: Scalar, y: Y, args: Args) -> Any:
    """A penalty of zero, of the shape that the rates have.

    Runge-Kutta methods of diffrax want one type of numbers, so it is of the type of the state.
    """
    evaluate = lambda t, y, args: combine_rates(
        field.regularizer, field.term.vf, t, y, args, field.states
    )
    _, rates = eqx.filter_eval_shape(evaluate, t, y, args)
    zero = nothing_of((field, y, args))

    def like(rate):
        with jax.numpy_dtype_promotion("standard"):
            dtype = jnp.result_type(rate.dtype, jnp.result_type(t), *jtu.tree_leaves(y))
        return jnp.zeros(rate.shape, dtype) + zero.astype(dtype)

    return jtu.tree_map(like, rates)


def finalize(regularizer: Any, integrals: Any, t0: Scalar, t1: Scalar) -> Any:
    """The penalties, from the integrals of the rates, which are real."""
    integrals = jtu.tree_map(jnp.real, integrals)
    leaves, treedef = jtu.tree_flatten(regularizer, is_leaf=is_regularizer)
    integrals = treedef.flatten_up_to(integrals)
    return treedef.unflatten(
        leaf.finalize(integral, t0, t1) for leaf, integral in zip(leaves, integrals, strict=True)
    )


def plain(tree: Any) -> Any:
    """Any pytree of states, terms or both, as it would be if there were no penalty.

    It turns what a solver or an adjoint knows of the larger system into what it would know of the
    plain one: states, error estimates, dense output, cotangents of the vector field.
    """
    larger = lambda x: hasattr(x, "plain_part")
    return jtu.tree_map(lambda x: x.plain_part if larger(x) else x, tree, is_leaf=larger)


def regularized(
    term: dfx.ODETerm,
    regularizer: Any,
    *,
    y0: Y = None,
    args: Args = None,
    key: Key | None = None,
) -> dfx.ODETerm:
    """The term of the system (y, penalty), for calling diffrax oneself.

    ```python
    term = tn.regularized(dfx.ODETerm(f), tn.TotalDerivative(order=3))
    controller = dfx.PIDController(rtol=1e-5, atol=1e-5, norm=tn.StateNorm())
    solve = functools.partial(dfx.diffeqsolve, stepsize_controller=controller)
    ys, penalty = solve(term, dfx.Tsit5(), 0.0, 1.0, 0.1, (y0, 0.0)).ys
    ```

    **Arguments:**

    - `term`: the term of the plain system.
    - `regularizer`: one, or a pytree of them; the penalty is then a pytree of the same structure.
    - `y0`, `args`, `key`: for regularizers that draw noise, such as `JacobianFrobenius`.
    """
    check_regularizer(term, regularizer)
    states = initial_states(regularizer, y0, args, key)
    return dfx.ODETerm(AugmentedField(term, regularizer, states))


class StateNorm(eqx.Module):
    """A norm that leaves the penalty out, for step-size control of `regularized` terms.

    In a backward solve by `diffrax.BacksolveAdjoint` it sees the state, its cotangent and the
    cotangents of arguments and terms, as the norm of the plain system would.

    **Arguments:**

    - `norm`: the norm of what is left; root mean square by default, as in diffrax.
    """

    norm: Callable[[Any], Any] = optx.rms_norm

    def __call__(self, x: Any) -> Any:
        """The norm of `(y, penalty)`, or of the four parts of its adjoint."""
        if len(x) == 2:
            y, _ = x
            return self.norm(y)
        (y, _), (y_cotangent, _), args_cotangent, term_cotangent = x
        return self.norm((y, y_cotangent, args_cotangent, plain(term_cotangent)))


def check_regularizer(term: Any, regularizer: Any) -> None:
    """Refuse what cannot be regularized, naming the argument."""
    if not isinstance(term, dfx.ODETerm):
        raise TypeError(
            f"`regularizer` needs `terms` to be an `ODETerm`, got `{type(term).__name__}`. Speed "
            "regularization of stochastic, controlled or split differential equations is not "
            "defined here."
        )
    leaves = jtu.tree_leaves(regularizer, is_leaf=is_regularizer)
    for leaf in leaves:
        if not is_regularizer(leaf):
            hint = f" Did you mean `{leaf.__name__}(...)`?" if isinstance(leaf, type) else ""
            raise TypeError(
                "`regularizer` must be a regularizer such as `TotalDerivative(order=2)`, or a "
                f"pytree of them, got {leaf!r}.{hint}"
            )
    if not leaves:
        raise ValueError("`regularizer` is an empty pytree; pass `None` for a plain solve.")
