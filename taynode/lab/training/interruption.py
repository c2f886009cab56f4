"""Ctrl-C as a wish."""

import signal
from typing import Any


class Interruption:
    """Turns Ctrl-C into a wish to stop after the current steps; a second one stops at once."""

    def __init__(self):
        self.asked = False
        self.previous: Any = None

    def __enter__(self) -> "Interruption":
        try:
            self.previous = signal.signal(signal.SIGINT, self._ask)
        except ValueError:  # not in the main thread, where signals arrive
            self.previous = None
        return self

    def __exit__(self, *exc: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def _ask(self, number: int, frame: Any) -> None:
        del number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
