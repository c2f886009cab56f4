"""Linear and structural primitives: order k of the output is the primitive applied to order k.

Integer and boolean operands (indices, predicates, positions of slices) keep their value at every
order. An inexact operand that is not active contributes zero above order 0.
"""

import math

from jax import lax
from jax.extend.core import primitives as p

from ..program import Equation, is_inexact
from ..registry import Rule, rule_for, RULES, ZERO_DERIVATIVE
from ..series import add, divide, instantiate, scale, subtract


def always_linear(equation: Equation) -> bool:
    """The `linear` of rules that read nothing of lower orders but constants."""
    return True


def _structural(**changes):
    def step(equation, k, inputs, outputs, memory):
        if all(u[k] is None for u in inputs):
            return [None] * len(equation.out_avals)
        operands = [
            instantiate(u[k], aval) if is_inexact(aval) else u[0]
            for u, aval in zip(inputs, equation.in_avals, strict=True)
        ]
        return equation.bind(*operands, **changes)

    return Rule(step, linear=always_linear)


for _primitive in (
    p.broadcast_in_dim_p,
    p.complex_p,
    p.concatenate_p,
    p.conj_p,
    p.convert_element_type_p,
    p.copy_p,
    p.cumsum_p,
    p.device_put_p,
    p.dynamic_slice_p,
    p.dynamic_update_slice_p,
    p.fft_p,
    p.imag_p,
    p.name_p,
    p.neg_p,
    p.pad_p,
    p.real_p,
    p.reduce_sum_p,
    p.reduce_window_sum_p,
    p.reshape_p,
    p.rev_p,
    p.scatter_add_p,
    p.select_n_p,
    p.sharding_constraint_p,
    p.slice_p,
    p.squeeze_p,
    p.transpose_p,
    lax.optimization_barrier_p,
    lax.scatter_sub_p,
    lax.split_p,
    lax.stack_p,
    lax.tile_p,
    lax.unstack_p,
):
    RULES[_primitive] = _structural()

# Positions out of bounds read `fill_value`, which is a constant.
RULES[p.gather_p] = _structural(fill_value=0)

ZERO_DERIVATIVE.update(
    {
        p.bitcast_convert_type_p,
        p.ceil_p,
        p.floor_p,
        p.nextafter_p,
        p.round_p,
        p.sign_p,
        p.stop_gradient_p,
    }
)


@rule_for(p.add_p, p.add_jaxvals_p, linear=always_linear)
def _add(equation, k, inputs, outputs, memory):
    return [_full_shape(add(inputs[0][k], inputs[1][k]), equation)]


@rule_for(p.sub_p, linear=always_linear)
def _sub(equation, k, inputs, outputs, memory):
    return [_full_shape(subtract(inputs[0][k], inputs[1][k]), equation)]


@rule_for(p.reduce_precision_p, linear=always_linear)
def _reduce_precision(equation, k, inputs, outputs, memory):
    # As in JAX, the derivative is rounded, not the coefficient.
    (u,) = inputs
    if u[k] is None:
        return [None]
    (rounded,) = equation.bind(scale(u[k], math.factorial(k)))
    return [divide(rounded, math.factorial(k))]


def _full_shape(x, equation):
    # A scalar operand beside an array of zeros has too few dimensions.
    return None if x is None else instantiate(x, equation.out_avals[0])
