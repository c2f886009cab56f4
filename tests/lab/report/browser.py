"""The Chromium that the tests of the page run in.

`python -m tests.lab.report.browser` makes sure that there is one, if need be by a download. `make
test` does so once, before the tests.
"""

import os
import shutil
import subprocess
import sys
from typing import Any

from playwright.sync_api import Browser, Error, Playwright, sync_playwright


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Containers run as root, and Chromium refuses to run its sandbox as root.
FLAGS = ["--no-sandbox", "--disable-gpu"]
ADVICE = (
    "no Chromium starts on this machine. Install one (on Debian: `apt-get install chromium`), "
    "or set CHROMIUM to its path"
)
# Some 100 MB. Nobody should wait for a network that is slower than this, or swallows requests.
DOWNLOAD_SECONDS = 180


# Where a self-contained page may look things up.
LOCAL = ("file:", "data:", "blob:")


class NoBrowser(Exception):
    """No Chromium starts on this machine."""


def candidates() -> list[dict[str, Any]]:
    """Arguments of `playwright.chromium.launch`, in order of preference.

    The browser that CHROMIUM names, and no other. Without CHROMIUM: those on the path, Chrome where
    its installer puts it, and the one that `playwright install` downloads.
    """
    if named := os.environ.get("CHROMIUM"):
        return [{"executable_path": named}]
    on_path = [{"executable_path": path} for path in map(shutil.which, NAMES) if path]
    return [*on_path, {"channel": "chrome"}, {}]


def launch(playwright: Playwright) -> Browser:
    """The first candidate that starts: a file on the path may be a mere stub of one."""
    for candidate in candidates():
        try:
            return playwright.chromium.launch(**candidate, args=FLAGS)
        except Error:
            continue
    raise NoBrowser(ADVICE)


def available() -> bool:
    """Whether a Chromium starts on this machine."""
    with sync_playwright() as playwright:
        try:
            launch(playwright).close()
        except NoBrowser:
            return False
    return True


def download() -> None:
    """Let playwright download its Chromium, where the network allows it."""
    command = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    environment = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000", **os.environ}
    try:
        subprocess.run(command, env=environment, capture_output=True, timeout=DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        pass


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def main() -> None:
    """Have a Chromium, or say that there is none."""
    if available():
        return
    say("Downloading a Chromium for the tests of the page, this once.")
    download()
    if not available():
        say(f"The tests of the page will not run: {ADVICE}.")


if __name__ == "__main__":
    main()
