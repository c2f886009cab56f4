"""Stop cleanly on Ctrl-C."""

import signal
from typing import Any


class Interruption:
    """Turns Ctrl-C into a request to stop. A second Ctrl-C raises `KeyboardInterrupt`."""

    def __init__(self):
        self.requested = False
        self.previous: Any = None

    def __enter__(self) -> "Interruption":
        try:
            self.previous = signal.signal(signal.SIGINT, self._request)
        except ValueError:
            pass  # Only the main thread receives signals.
        return self

    def __exit__(self, *exc: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def _request(self, *_: Any) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
