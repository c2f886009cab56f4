"""Taylor rules of users, for primitives and for functions."""

import functools as ft
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax.core import eval_jaxpr, ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .jaxprs import open_jaxpr
from .program import is_inexact
from .registry import Rule, rule_for, RULES
from .series import cast, instantiate, Series


UserRule = Callable[..., Any]


def register_rule(target: Any, rule: UserRule | Primitive) -> Any:
    """Give a primitive or a function its own Taylor rule.

    Everything that has a JVP rule works without one. A Taylor rule is useful where a recurrence is
    cheaper or more accurate than differentiating the first derivative, or where there is no JVP
    rule at all.

    **Arguments:**

    - `target`: a `jax.extend.core.Primitive`, or any function of arrays (or pytrees of arrays).
    - `rule`: a function `rule(k, inputs, outputs, memory, **params)` that returns coefficient k >=
        1 of the output, or a list with one for each output. `inputs[i][j]` is coefficient j of the
        i-th array, for j up to k; `outputs[i][j]` likewise, for j up to k - 1. Coefficients are
        derivatives divided by j!, and order 0 is computed by the target itself. `memory` is a
        dictionary from integers to pytrees of arrays, empty at first. It is kept from one order to
        the next, and a rule may keep arrays nowhere else. `params` are the parameters of the
        primitive; a function has none.
        If the target is a primitive, `rule` may also be another primitive, whose rule is then used:
        for example `jax.extend.core.primitives.dot_general_p` for a primitive that is bilinear.

    **Returns:**

    The primitive itself, or a new function that computes the same as the one given. The new
    function keeps its rule under `jit`, `vmap` and inside loops. (Under `jvp` and `grad` *inside*
    the function that is expanded, the derivative of the original function is used.)

    !!! example

        y = exp(u) satisfies y' = y u', so k y_[k] is the sum of j u_[j] y_[k-j].

        ```python
        def rule(k, inputs, outputs, memory):
            (u,), (y,) = inputs, outputs
            return sum(j * u[j] * y[k - j] for j in range(1, k + 1)) / k

        exp = tn.register_rule(jnp.exp, rule)
        ```
    """
    if isinstance(target, Primitive):
        if isinstance(rule, Primitive):
            if rule not in RULES:
                raise ValueError(f"`rule` must be a primitive with a Taylor rule, got `{rule}`.")
            RULES[target] = RULES[rule]
            return target

        def step(equation, k, inputs, outputs, memory):
            with_params = ft.partial(rule, **equation.params)
            return _apply(with_params, equation, k, inputs, equation.in_avals, outputs, memory)

        RULES[target] = Rule(step)
        return target
    if not callable(target):
        raise TypeError(f"`target` must be a JAX primitive or a function, got {target!r}.")
    if not callable(rule):
        raise TypeError(f"`rule` must be a function if `target` is one, got {rule!r}.")

    @ft.wraps(target)
    def with_rule(*args):
        closed, out_shape = jax.make_jaxpr(target, return_shape=True)(*args)
        # Arrays that the function closes over are operands too: they may be differentiated or
        # mapped over.
        jaxpr, consts = open_jaxpr(closed)
        num_consts = len(consts)

        def fun(*operands):
            return eval_jaxpr(jaxpr, operands[:num_consts], *operands[num_consts:])

        operands = (*consts, *jtu.tree_leaves(args))
        out = _with_rule_p.bind(*operands, fun=fun, rule=rule, num_consts=num_consts)
        return jtu.tree_structure(out_shape).unflatten(out)

    return with_rule


class _Dense:
    """A series in which structural zeros read as arrays of zeros."""

    def __init__(self, series: Any, aval: Any):
        self._series, self._aval = series, aval

    def __getitem__(self, k):
        coefficient = self._series[k]
        return instantiate(coefficient, self._aval) if is_inexact(self._aval) else coefficient


def _apply(rule, equation, k, inputs, in_avals, outputs, memory):
    dense_in = [_Dense(u, aval) for u, aval in zip(inputs, in_avals, strict=True)]
    dense_out = [_Dense(y, aval) for y, aval in zip(outputs, equation.out_avals, strict=True)]
    result = rule(k, dense_in, dense_out, memory)
    result = list(result) if isinstance(result, list | tuple) else [result]
    _check(equation, k, result)
    return [
        None if x is None else cast(jnp.asarray(x), aval.dtype)
        for x, aval in zip(result, equation.out_avals, strict=True)
    ]


def _check(equation, k, result):
    if len(result) != len(equation.out_avals):
        raise ValueError(
            f"The rule of `{equation.primitive.name}` must return {len(equation.out_avals)} "
            f"coefficients, one for each output, got {len(result)} at order {k}."
        )
    for x, aval in zip(result, equation.out_avals, strict=True):
        if x is not None and jnp.shape(x) != aval.shape:
            raise ValueError(
                f"The rule of `{equation.primitive.name}` must return coefficients of shape "
                f"{aval.shape}, got {jnp.shape(x)} at order {k}."
            )


# --- the primitive behind functions with a rule

_with_rule_p = Primitive("with_taylor_rule")
_with_rule_p.multiple_results = True


@_with_rule_p.def_impl
def _impl(*args, fun, rule, num_consts):
    del rule, num_consts
    return fun(*args)


@_with_rule_p.def_abstract_eval
def _abstract_eval(*avals, fun, rule, num_consts):
    del rule, num_consts
    outs = jax.eval_shape(fun, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))
    return [ShapedArray(out.shape, out.dtype) for out in outs]


mlir.register_lowering(_with_rule_p, mlir.lower_fun(_impl, multiple_results=True))


def _jvp(primals, tangents, *, fun, rule, num_consts):
    del rule, num_consts
    return jax.jvp(fun, tuple(primals), tuple(map(ad.instantiate_zeros, tangents)))


ad.primitive_jvps[_with_rule_p] = _jvp


def _batch(args, axes, *, fun, rule, num_consts):
    batched = jax.vmap(fun, in_axes=tuple(axes))
    batched_rule = ft.partial(_batched_rule, rule, tuple(axes)[num_consts:])
    outs = _with_rule_p.bind(*args, fun=batched, rule=batched_rule, num_consts=num_consts)
    return outs, [0] * len(outs)


batching.primitive_batchers[_with_rule_p] = _batch


def _batched_rule(rule, axes: Sequence[int | None], k, inputs, outputs, memory):
    """The rule of one element, mapped over the batch."""
    # Integer arguments have a value and no higher orders.
    known_in = [[u[j] for j in range(k + 1) if j == 0 or u[j] is not None] for u in inputs]
    known_out = [[y[j] for j in range(k)] for y in outputs]

    def one(inputs, outputs, memory):
        memory = dict(memory)
        result = rule(k, [Series(u, constant=len(u) == 1) for u in inputs], outputs, memory)
        return list(result) if isinstance(result, list | tuple) else [result], memory

    in_axes = [[axis] * len(u) for axis, u in zip(axes, known_in, strict=True)]
    result, new_memory = jax.vmap(one, in_axes=(in_axes, 0, 0))(known_in, known_out, dict(memory))
    memory.update(new_memory)
    return result


@rule_for(_with_rule_p)
def _with_rule(equation, k, inputs, outputs, memory):
    num_consts = equation.params["num_consts"]
    if any(equation.active[:num_consts]):
        raise ValueError(
            "A function with its own Taylor rule closes over an array that moves along the curve. "
            "Pass this array as an argument of the function, so that the rule receives it."
        )
    inputs, avals = inputs[num_consts:], equation.in_avals[num_consts:]
    return _apply(equation.params["rule"], equation, k, inputs, avals, outputs, memory)
