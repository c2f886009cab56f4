"""Branches and loops. The primal decides which branch is taken and how often a loop runs.

- `cond` and `switch`: one conditional per order. What a branch must remember of lower orders leaves
  it as an output, and enters it again at the next order, as JAX does for reverse mode.
- `scan`: one scan per order, over the stacked values that the body remembers of lower orders; as
  much memory as the reverse pass of the scan needs anyway. Nothing is computed twice, and what does
  not change from one iteration to the next is computed once, outside.
- `while`: the number of iterations is not known while tracing, so nothing can be stored: order k
  runs the loop with all orders up to k. K derivatives cost K (K + 1) / 2 sweeps of the body.
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

from ..advance import Sweep
from ..jaxprs import open_jaxpr, scan_lengths
from ..program import Equation, Program
from ..registry import rule_for
from ..series import instantiate, Series


# Key of the one thing that a loop keeps beside the records of its orders.
_SHARED = -1


def _instantiate_all(coefficients, avals):
    return [instantiate(x, aval) for x, aval in zip(coefficients, avals, strict=True)]


def _spread(active, values):
    """`values` at the places that are active, None elsewhere."""
    values = iter(values)
    return [next(values) if moves else None for moves in active]


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
    moving = [i for i, moves in enumerate(equation.output_activity) if k == 0 or moves]
    avals = [equation.out_avals[i] for i in moving]
    records = [memory[j] for j in range(k)]

    def run(which):
        shared = dict(zip(branches[which].inputs, operands, strict=True))
        sweep = Sweep.restore(branches[which], [record[which] for record in records], shared)
        values = sweep.advance([None] * len(operands))
        return _instantiate_all([values[i] for i in moving], avals), sweep.record()

    # Each branch must return the records of all: its own, and zeros in place of the others'.
    types = [_types(lambda which=which: run(which)[1]) for which in range(len(branches))]

    def branch(which):
        def fun():
            values, own = run(which)
            rest = [jtu.tree_map(zeros_like_aval, record) for record in types]
            return values, [own if i == which else rest[i] for i in range(len(branches))]

        return fun

    values, memory[k] = lax.switch(index[0], [branch(i) for i in range(len(branches))])
    if k == 0:
        return values
    return _spread(equation.output_activity, values)


def _types(fun):
    """The types of what a function returns, as a pytree, without evaluating it."""
    types = []
    jax.eval_shape(lambda: types.append(jtu.tree_map(jax.typeof, fun())))
    return types[0]


# --- scan


class _Scan:
    """The static facts of one scan."""

    def __init__(self, params: dict[str, Any], active: Sequence[bool]):
        self.num_consts, self.num_carry = scan_lengths(params)
        self.options = {name: params[name] for name in ("length", "reverse", "unroll")}
        # A carry moves if it moves at the start, or is made to move by the body.
        active = list(active)
        while True:
            self.body = Program(params["jaxpr"], active)
            outputs = self.body.output_activity
            carried = [
                a or b
                for a, b in zip(
                    self.consts_carry_xs(active)[1], outputs[: self.num_carry], strict=False
                )
            ]
            if carried == self.consts_carry_xs(active)[1]:
                break
            active[self.num_consts : self.num_consts + self.num_carry] = carried
        self.active = active
        # Outputs as the body's types have them; a carry moves even where the last body resets it.
        self.output_activity = carried + outputs[self.num_carry :]

    def consts_carry_xs(self, values):
        """Split what goes with the inputs of the body."""
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

    # What no iteration changes is known outside: the constants at all orders, and what follows
    # from those that do not move, such as the transpose of a weight matrix.
    shared = dict(zip(slots, consts, strict=True))
    fixed = body.fixed_by([slot for slot in slots if not body.active[slot]])
    if k == 0:
        memory[_SHARED] = _evaluate_fixed(body, fixed, shared)
    for slot, value in memory[_SHARED].items():
        shared[slot] = Series([value], constant=True)

    _, carry_active, xs_active = scan.consts_carry_xs(scan.active)
    takes_carry = [k == 0 or moves for moves in carry_active]
    takes_x = [k == 0 or moves for moves in xs_active]
    gives = [k == 0 or moves for moves in scan.output_activity]
    out_avals = [body.avals[slot] for slot in body.outputs]

    def step(carry, slices):
        x, records = slices
        sweep = Sweep.restore(body, records, shared)
        inner = [None] * scan.num_consts + _spread(takes_carry, carry) + _spread(takes_x, x)
        values = _instantiate_or_skip(sweep.advance(inner), out_avals, gives)
        new_carry = [v for v, take in zip(values[:num_carry], takes_carry, strict=True) if take]
        return new_carry, ([v for v in values[num_carry:] if v is not None], sweep.record())

    start = [
        instantiate(u[k], aval)
        for u, aval, take in zip(
            init, scan.consts_carry_xs(equation.in_avals)[1], takes_carry, strict=True
        )
        if take
    ]
    slices = [u[k] for u, take in zip(xs, takes_x, strict=True) if take]
    records = [memory[j] for j in range(k)]
    carry, (ys, memory[k]) = lax.scan(step, start, (slices, records), **scan.options)
    return _spread(takes_carry, carry) + _spread(gives[num_carry:], ys)


def _instantiate_or_skip(values, avals, wanted):
    return [
        instantiate(v, aval) if want else None
        for v, aval, want in zip(values, avals, wanted, strict=True)
    ]


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
        while True:
            # Effects have happened at order 0, which is the primitive itself.
            self.body = Program(params["body_jaxpr"], consts + carried, effects=False)
            moved = [a or b for a, b in zip(carried, self.body.output_activity, strict=True)]
            if moved == carried:
                break
            carried = moved
        self.carried = carried
        self.cond_is_batched = bool(open_jaxpr(self.cond)[0].outvars[0].aval.shape)

    def split(self, values):
        """Split what goes with the inputs: constants of the condition, of the body, the carry."""
        middle = self.num_cond + self.num_body
        return values[: self.num_cond], values[self.num_cond : middle], values[middle:]


def _while_of(equation: Equation) -> _While:
    return equation.derive("while", lambda: _While(equation.params, equation.active))


@rule_for(p.while_p, activity=lambda equation: _while_of(equation).carried)
def _while(equation, k, inputs, outputs, memory):
    loop = _while_of(equation)
    cond_consts, body_consts, init = loop.split(inputs)
    carry_avals = loop.split(equation.in_avals)[2]
    orders = range(k + 1)
    shared = dict(zip(loop.body.inputs, body_consts, strict=False))

    def at_order(carry, j):
        return [c[j] if j < len(c) else None for c in carry]

    def going(carry):
        # Under vmap each element of the batch has its own say.
        (value,) = eval_jaxpr(
            *open_jaxpr(loop.cond), *(u[0] for u in cond_consts), *at_order(carry, 0)
        )
        return value

    def body(carry):
        goes_on = going(carry)
        return jtu.tree_map(lambda new, old: _where(goes_on, new, old), step(carry), carry)

    def step(carry):
        sweep = Sweep(loop.body, shared)
        orders_out = [sweep.advance([None] * loop.num_body + at_order(carry, j)) for j in orders]
        return [
            [instantiate(orders_out[j][i], aval) for j in range(len(carry[i]))]
            for i, aval in enumerate(carry_avals)
        ]

    start = [
        [instantiate(u[j], aval) for j in orders] if moves else [u[0]]
        for u, aval, moves in zip(init, carry_avals, loop.carried, strict=True)
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
