"""A browser for all tests of a process, and pages to look at."""

import pytest

from .browser import find_chromium


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers run as root, where Chromium refuses its sandbox.
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens a file offline, waits until all is drawn, and fails on any message of the browser."""
    contexts, messages = [], []

    def open_file(file, *, width=1280, height=900, theme="light", touch=False):
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            has_touch=touch,
            is_mobile=touch,
            offline=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(LOCAL) else messages.append(r.url))
        page.goto(file.resolve().as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert messages == []


# Where a self-contained page may look things up.
LOCAL = ("file:", "data:", "blob:")
