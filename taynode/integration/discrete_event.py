"""The deprecated argument `discrete_terminating_event` of diffrax."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx

from .._types import Args, BoolScalarLike, RealScalarLike, Y
from .warn import warn


class _State(NamedTuple):
    """The part of the state of a solve that such an event may read."""

    tprev: RealScalarLike
    y: Y


class _Condition(eqx.Module):
    event: Callable[..., BoolScalarLike]

    def __call__(self, t: RealScalarLike, y: Y, args: Args, **others: Any) -> BoolScalarLike:
        return self.event(_State(t, y), args=args, **others)


def merge_events(
    event: Any, discrete_terminating_event: Callable[..., BoolScalarLike] | None
) -> Any:
    """Convert the deprecated argument to an event."""
    if discrete_terminating_event is None:
        return event
    if event is not None:
        raise ValueError("`event` and `discrete_terminating_event` cannot be used together.")
    warn("`discrete_terminating_event` is deprecated; use `event=diffrax.Event(...)`.")
    return dfx.Event(_Condition(discrete_terminating_event))
