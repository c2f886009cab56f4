"""Chromium for the tests of the page. There is no page worth having that was not looked at."""

import os
import shutil


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ADVICE = (
    "No Chromium was found, and the report page cannot be tested without it. Install it, on Debian "
    "with `apt-get install --no-install-recommends chromium`, or let CHROMIUM be its path."
)


def find_chromium() -> str:
    """The path of a Chromium on this machine. Having none is an error: it is not optional."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        raise RuntimeError(ADVICE)
    return found
