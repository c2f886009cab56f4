"""Stop cleanly on Ctrl-C."""

import signal
from types import FrameType


class Interruption:
    """Turns Ctrl-C into a request to stop. A second Ctrl-C raises `KeyboardInterrupt`."""

    def __init__(self):
        self.requested = False
        self.previous = None

    def __enter__(self) -> "Interruption":
        try:
            self.previous = signal.signal(signal.SIGINT, self._request)
        except ValueError:
            pass  # Only the main thread receives signals.
        return self

    def __exit__(self, *exc: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def _request(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
