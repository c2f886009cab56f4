"""The browser of all tests of a process, as a fixture that `tests/conftest.py` registers.

Registered in two places it would start twice, which Playwright refuses in one process.
"""

import os

import pytest


@pytest.fixture(scope="session")
def chromium():
    """Without one, its tests are skipped: pytest's summary has one line for all of them.

    Where everything must be tested, a missing browser is an error.
    """
    # Most tests need no browser, and need not wait for this import.
    from playwright.sync_api import sync_playwright

    from .browser import launch, NoBrowser

    with sync_playwright() as playwright:
        try:
            browser = launch(playwright)
        except NoBrowser as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"Tests of the page: {error}.")
        yield browser
        browser.close()
