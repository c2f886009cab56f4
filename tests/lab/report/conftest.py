"""Pages to look at in a browser."""

import pytest

from .browser import LOCAL


class Viewer:
    """Opens files offline, waits until all is drawn, and keeps what the browser complains about."""

    def __init__(self, browser):
        self.browser, self.messages, self.open_pages = browser, [], {}

    def __call__(self, file, *, fresh=False, width=1280, height=900, theme="light", touch=False):
        """A page. Those that are only looked at are opened once; `fresh` ones may be changed."""
        key = (file, width, height, theme, touch, len(self.open_pages) if fresh else None)
        if key not in self.open_pages:
            context = self.browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=theme,
                has_touch=touch,
                is_mobile=touch,
                offline=True,
            )
            page = context.new_page()
            page.set_default_timeout(30_000)
            page.on("console", lambda message: self.messages.append(message.text))
            page.on("pageerror", lambda error: self.messages.append(str(error)))
            page.on("request", self.hear)
            page.goto(file.resolve().as_uri())
            page.wait_for_selector("html[data-drawn]", state="attached")
            self.open_pages[key] = page
        return self.open_pages[key]

    def hear(self, request):
        if not request.url.startswith(LOCAL):
            self.messages.append(request.url)


@pytest.fixture(scope="module")
def viewer(chromium):
    viewer = Viewer(chromium)
    yield viewer
    for page in viewer.open_pages.values():
        page.context.close()


@pytest.fixture
def open_page(viewer):
    """Opens pages, on which the browser has nothing to remark."""
    yield viewer
    messages, viewer.messages = viewer.messages, []
    assert messages == []
