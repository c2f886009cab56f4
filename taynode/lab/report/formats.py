"""Numbers and settings as text for readers."""

import math
from typing import TypeGuard


MISSING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
# Narrow, and without a line break.
SPACE = "\N{NARROW NO-BREAK SPACE}"


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def number(value: object, digits: int = 3) -> str:
    """A number with some significant digits: 41.8, 0.00123, 4.2e-7."""
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


def fixed(value: object, decimals: int = 1) -> str:
    """A number with some decimals, for columns."""
    if not is_number(value):
        return MISSING
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def percent(value: object) -> str:
    """A share as 2.8 %; small shares have one more digit."""
    if not is_number(value):
        return MISSING
    decimals = 2 if 0 < abs(100 * value) < 0.95 else 1
    return f"{fixed(100 * value, decimals)}{SPACE}%"


def change(before: object, after: object) -> str:
    """A relative change with its sign: -34 %."""
    if not (is_number(before) and is_number(after)) or before == 0:
        return MISSING
    value = round(100 * (after / before - 1))
    sign = MINUS if value < 0 else "+" if value > 0 else "\N{PLUS-MINUS SIGN}"
    return f"{sign}{abs(value)}{SPACE}%"


def setting(value: object) -> str:
    """A setting as one types it: 0.1, 1e-5, none."""
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


def duration(seconds: object) -> str:
    """Seconds as 640 ms, 12.3 s, 4.2 min or 3.1 h."""
    if not is_number(seconds):
        return MISSING
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= size * (1.5 if size > 1 else 1.0):
            return f"{number(seconds / size)}{SPACE}{unit}"
    return f"{number(1000 * seconds)}{SPACE}ms"
