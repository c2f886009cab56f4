"""The old interface of diffrax for events, which diffrax still accepts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx

from .._types import Args, RealScalarLike, Y
from .warn import warn


class _State(NamedTuple):
    """What such an event may read of the state of a solve."""

    tprev: RealScalarLike
    y: Y


class _Condition(eqx.Module):
    event: Callable[..., Any]

    def __call__(self, t: RealScalarLike, y: Y, args: Args, **others: Any) -> Any:
        return self.event(_State(t, y), args=args, **others)


def merge_events(event: dfx.Event | None, discrete_terminating_event: Any) -> dfx.Event | None:
    """The one event of a solve, from the new and the old argument."""
    if discrete_terminating_event is None:
        return event
    if event is not None:
        raise ValueError("`event` and `discrete_terminating_event` cannot be used together.")
    warn("`discrete_terminating_event` is deprecated; use `event=diffrax.Event(...)`.")
    return dfx.Event(_Condition(discrete_terminating_event))
