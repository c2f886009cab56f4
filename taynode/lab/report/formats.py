"""Numbers as people write them."""

import math
from typing import Any, TypeGuard


MISSING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
# Narrow, and no line breaks at it.
SPACE = "\N{NARROW NO-BREAK SPACE}"


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and math.isfinite(value)


def number(value: Any, digits: int = 3) -> str:
    """With some significant digits: 41.8, 0.00123, 4.2e-7."""
    if not is_number(value):
        return MISSING
    if value == 0:
        return "0"
    if isinstance(value, int) and abs(value) < 10**6:
        return f"{value:,}".replace("-", MINUS)
    text = f"{value:.{digits - 1}e}"
    mantissa, exponent = text.split("e")
    power = int(exponent)
    if not -4 <= power < 6:
        return f"{mantissa}e{power}".replace("-", MINUS)
    return f"{value:,.{max(0, digits - 1 - power)}f}".replace("-", MINUS)


def fixed(value: Any, decimals: int = 1) -> str:
    """With some decimals, for columns of one kind."""
    if not is_number(value):
        return MISSING
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def percent(value: Any) -> str:
    """A share as 2.8 %; small ones with one more digit."""
    if not is_number(value):
        return MISSING
    decimals = 2 if 0 < abs(100 * value) < 0.95 else 1
    return f"{fixed(100 * value, decimals)}{SPACE}%"


def change(before: Any, after: Any) -> str:
    """A relative change as -34 %, with its sign."""
    if not (is_number(before) and is_number(after)) or before == 0:
        return MISSING
    value = round(100 * (after / before - 1))
    sign = MINUS if value < 0 else "+" if value > 0 else "\N{PLUS-MINUS SIGN}"
    return f"{sign}{abs(value)}{SPACE}%"


def setting(value: Any) -> str:
    """A value of a configuration as one would type it: 0.1, 1e-5, none."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        mantissa, _, exponent = f"{value:.12g}".partition("e")
        return f"{mantissa}e{int(exponent)}" if exponent else mantissa
    if isinstance(value, list | tuple):
        return ", ".join(setting(item) for item in value) or "none"
    return str(value)


def duration(seconds: Any) -> str:
    """Seconds as 640 ms, 12.3 s, 4.2 min or 3.1 h."""
    if not is_number(seconds):
        return MISSING
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size * (1.5 if size > 1 else 1.0):
            return f"{number(seconds / size)}{SPACE}{unit}"
    return f"{number(1000 * seconds)}{SPACE}ms"
