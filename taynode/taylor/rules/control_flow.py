"""Branches and loops. The primal decides which branch is taken and how often a loop runs.

- `cond` and `switch`: one conditional per order. The records of a branch are outputs of this
  conditional and inputs of the next one, as in JAX's reverse mode.
- `scan`: one scan per order, over the stacked records of the lower orders. They take as much memory
  as the reverse pass of the scan needs anyway. Nothing is computed twice, and values that no
  iteration changes are computed once, outside of the scan.
- `while`: the number of iterations is not known while tracing, so no records can be stored. Order k
  runs the loop with all orders up to k. K derivatives evaluate the body K (K + 1) / 2 times.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from jax import lax
from jax.core import eval_jaxpr
from jax.extend.core import primitives as p
from jax.interpreters.ad import zeros_like_aval

from ..expansion import Expansion
from ..jaxprs import open_jaxpr, scan_lengths
from ..program import Equation, Program
from ..registry import rule_for
from ..series import instantiate, Series


# The key, in a scan's memory, of the values that no iteration changes; records have their order.
_SHARED = -1


def _select(coefficients, avals, wanted):
    """The wanted coefficients, structural zeros as arrays."""
    return [
        instantiate(x, aval)
        for x, aval, want in zip(coefficients, avals, wanted, strict=True)
        if want
    ]


def _spread(wanted, values):
    """The inverse of `_select`: `values` at the wanted places, `None` elsewhere."""
    values = iter(values)
    return [next(values) if want else None for want in wanted]


# --- cond and switch


def _branches(equation: Equation) -> list[Program]:
    return equation.derive(
        "branches",
        lambda: [Program(b, equation.active[1:]) for b in equation.params["branches"]],
    )


def _cond_activity(equation):
    activities = [branch.output_activity for branch in _branches(equation)]
    return [any(outputs) for outputs in zip(*activities, strict=True)]


@rule_for(p.cond_p, owns_primal=True, activity=_cond_activity)
def _cond(equation, k, inputs, outputs, memory):
    index, *operands = inputs
    branches = _branches(equation)
    gives = [k == 0 or active for active in equation.output_activity]

    def run(which):
        branch = branches[which]
        records = [memory[j][which] for j in range(k)]
        expansion = Expansion.restore(
            branch, records, dict(zip(branch.inputs, operands, strict=True))
        )
        values = _select(expansion.advance(), equation.out_avals, gives)
        return values, expansion.record()

    # Each branch must return the records of all: its own, and zeros for the other branches.
    types = [_types(lambda which=which: run(which)[1]) for which in range(len(branches))]

    def branch(which):
        def fun():
            values, own = run(which)
            rest = [jtu.tree_map(zeros_like_aval, record) for record in types]
            return values, [own if i == which else rest[i] for i in range(len(branches))]

        return fun

    values, memory[k] = lax.switch(index[0], [branch(i) for i in range(len(branches))])
    return _spread(gives, values)


def _types(fun):
    """The types of a function's results, as a pytree, without evaluating the function."""
    types = []
    jax.eval_shape(lambda: types.append(jtu.tree_map(jax.typeof, fun())))
    return types[0]


# --- scan


def _with_active_carry(build, carried):
    """The body of a loop, and which of its carried values are active.

    A carried value is active if it is so at the start, or if the body makes it so.
    """
    while True:
        body = build(carried)
        computed = body.output_activity[: len(carried)]
        grown = [a or b for a, b in zip(carried, computed, strict=True)]
        if grown == carried:
            return body, carried
        carried = grown


class _Scan:
    """The static facts of one scan."""

    def __init__(self, params: dict[str, Any], active: Sequence[bool]):
        self.num_consts, self.num_carry = scan_lengths(params)
        self.options = {name: params[name] for name in ("length", "reverse", "unroll")}
        consts, carried, self.active_xs = self.consts_carry_xs(list(active))
        self.body, self.active_carry = _with_active_carry(
            lambda carried: Program(params["jaxpr"], consts + carried + self.active_xs), carried
        )
        # A carry is active even where the last iteration resets it.
        self.output_activity = self.active_carry + self.body.output_activity[self.num_carry :]

    def consts_carry_xs(self, values):
        """Split a list that has an entry for each input of the body."""
        middle = self.num_consts + self.num_carry
        return values[: self.num_consts], values[self.num_consts : middle], values[middle:]


def _scan_of(equation: Equation) -> _Scan:
    return equation.derive("scan", lambda: _Scan(equation.params, equation.active))


@rule_for(p.scan_p, owns_primal=True, activity=lambda equation: _scan_of(equation).output_activity)
def _scan(equation, k, inputs, outputs, memory):
    scan = _scan_of(equation)
    body, num_carry = scan.body, scan.num_carry
    consts, init, xs = scan.consts_carry_xs(inputs)
    slots, _, _ = scan.consts_carry_xs(body.inputs)

    # No iteration changes the constants, nor the values computed from those that are not active,
    # such as the transpose of a weight matrix.
    shared = dict(zip(slots, consts, strict=True))
    fixed = body.fixed_by([slot for slot in slots if not body.active[slot]])
    if k == 0:
        memory[_SHARED] = _evaluate_fixed(body, fixed, shared)
    for slot, value in memory[_SHARED].items():
        shared[slot] = Series([value], constant=True)

    takes_carry = [k == 0 or active for active in scan.active_carry]
    takes_x = [k == 0 or active for active in scan.active_xs]
    gives = [k == 0 or active for active in scan.output_activity]
    out_avals = [body.avals[slot] for slot in body.outputs]

    def step(carry, slices):
        x, records = slices
        expansion = Expansion.restore(body, records, shared)
        inner = [None] * scan.num_consts + _spread(takes_carry, carry) + _spread(takes_x, x)
        values = expansion.advance(inner)
        new_carry = _select(values[:num_carry], out_avals[:num_carry], takes_carry)
        ys = _select(values[num_carry:], out_avals[num_carry:], gives[num_carry:])
        return new_carry, (ys, expansion.record())

    _, carry_avals, _ = scan.consts_carry_xs(equation.in_avals)
    start = _select([u[k] for u in init], carry_avals, takes_carry)
    slices = [u[k] for u, take in zip(xs, takes_x, strict=True) if take]
    records = [memory[j] for j in range(k)]
    carry, (ys, memory[k]) = lax.scan(step, start, (slices, records), **scan.options)
    return _spread(takes_carry, carry) + _spread(gives[num_carry:], ys)


def _evaluate_fixed(program: Program, positions, shared) -> dict[int, Any]:
    values = {slot: series[0] for slot, series in shared.items()} | program.constants
    computed = {}
    for i in positions:
        equation = program.equations[i]
        results = equation.bind(*(values[slot] for slot in equation.inputs))
        computed |= dict(zip(equation.outputs, results, strict=True))
        values |= computed
    return computed


# --- while


class _While:
    """The static facts of one while loop."""

    def __init__(self, params: dict[str, Any], active: Sequence[bool]):
        self.cond = params["cond_jaxpr"]
        self.num_cond, self.num_body = params["cond_nconsts"], params["body_nconsts"]
        _, consts, carried = self.split(list(active))
        # Effects have happened at order 0, which is the primitive itself.
        self.body, self.active_carry = _with_active_carry(
            lambda carried: Program(params["body_jaxpr"], consts + carried, effects=False), carried
        )
        self.cond_is_batched = bool(open_jaxpr(self.cond)[0].outvars[0].aval.shape)

    def split(self, values):
        """Split a list of all inputs: constants of the condition, those of the body, the carry."""
        middle = self.num_cond + self.num_body
        return values[: self.num_cond], values[self.num_cond : middle], values[middle:]


def _while_of(equation: Equation) -> _While:
    return equation.derive("while", lambda: _While(equation.params, equation.active))


@rule_for(p.while_p, activity=lambda equation: _while_of(equation).active_carry)
def _while(equation, k, inputs, outputs, memory):
    loop = _while_of(equation)
    cond_consts, body_consts, init = loop.split(inputs)
    carry_avals = loop.split(equation.in_avals)[2]
    orders = range(k + 1)
    shared = dict(zip(loop.body.inputs, body_consts, strict=False))

    def at_order(carry, j):
        return [c[j] if j < len(c) else None for c in carry]

    def going(carry):
        # Under vmap each element of the batch has a condition of its own.
        (value,) = eval_jaxpr(
            *open_jaxpr(loop.cond), *(u[0] for u in cond_consts), *at_order(carry, 0)
        )
        return value

    def body(carry):
        goes_on = going(carry)
        return jtu.tree_map(lambda new, old: _where(goes_on, new, old), step(carry), carry)

    def step(carry):
        expansion = Expansion(loop.body, shared)
        consts = [None] * loop.num_body
        results = [expansion.advance(consts + at_order(carry, j)) for j in orders]
        return [
            [instantiate(results[j][i], aval) for j in range(len(carry[i]))]
            for i, aval in enumerate(carry_avals)
        ]

    start = [
        [instantiate(u[j], aval) for j in orders] if active else [u[0]]
        for u, aval, active in zip(init, carry_avals, loop.active_carry, strict=True)
    ]
    batched = loop.cond_is_batched
    final = lax.while_loop(
        lambda carry: jnp.any(going(carry)) if batched else going(carry),
        body if batched else step,
        start,
    )
    return [c[k] if len(c) > 1 else None for c in final]


def _where(condition, x, y):
    """`x` where the condition on the leading axes holds, else `y`."""
    condition = jnp.reshape(condition, condition.shape + (1,) * (x.ndim - condition.ndim))
    return jnp.where(condition, x, y)
