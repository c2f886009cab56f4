"""The site as it is built: links, what it loads, and how it looks in a browser.

The tutorials are not executed for it; `make docs` does that.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.lab.report.browser import LOCAL
from website import tutorials


ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


def as_text(path):
    """The page of a tutorial without its outputs."""
    parts = [body if is_text else f"```python\n{body}\n```" for is_text, body in cells_of(path)]
    return {f"{path.stem}.md": "\n\n".join(parts)}


def cells_of(path):
    return tutorials.cells(path.read_text())


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site. A warning is an error here, as for `make docs`."""
    place = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tutorials, "rendered", as_text)
        patch.chdir(ROOT)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(place), strict=True))
    return place


class Page(HTMLParser):
    """What a page links to, what it loads, and the names of its parts."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe") and given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def pages(site):
    """All pages but that of errors, whose links are those of a server."""
    files = [file for file in site.rglob("*.html") if file.name != "404.html"]
    return {file: Page(file.read_text()) for file in files}


def test_every_link_leads_somewhere(pages):
    broken = []
    for file, page in pages.items():
        for link in page.links:
            if re.match(r"\w+:", link):
                continue
            path, anchor = urldefrag(link)
            target = (file.parent / unquote(path)).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].names if target in pages else None
            # The top of a page has the name "__top" or none; text fragments are for browsers.
            if not target.exists() or (
                anchor and known is not None and unquote(anchor) not in known
            ):
                broken.append((file.name, link))
    assert broken == []


def test_nothing_is_loaded_from_the_network(pages):
    for file, page in pages.items():
        for source in page.loaded:
            assert not source.startswith(("http", "//")), (file, source)
            assert (
                source.startswith("data:") or (file.parent / unquote(urldefrag(source)[0])).exists()
            )


def test_names_are_links_to_the_reference_and_to_diffrax(pages, site):
    links = pages[site / "guides" / "classifier.html"].links
    assert "../api/models.html#taynode.models.NeuralODEClassifier" in links
    links = pages[site / "api" / "solve.html"].links
    assert any(link.startswith("https://docs.kidger.site/diffrax/") for link in links)


def test_formulas_are_drawn(site):
    text = (site / "how-it-works.html").read_text()
    assert "<math" in text
    assert "arithmatex" not in text
    assert "\\" not in "".join(re.findall(r"<math.*?</math>", text, re.S))


LOOKS = [
    pytest.param(1280, "light", id="light"),
    pytest.param(1280, "dark", id="dark"),
    pytest.param(390, "light", id="phone"),
]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_browser_has_nothing_to_remark(site, chromium, width, scheme):
    """Opened as files: nothing from the network, no errors, nothing wider than the window."""
    messages = []
    size = {"width": width, "height": 900}
    context = chromium.new_context(viewport=size, color_scheme=scheme, offline=True)
    page = context.new_page()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(LOCAL) else messages.append(request.url),
    )
    for name in ("index", "guides/classifier", "api/solve", "results", "how-it-works"):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128
        assert light == (scheme == "light"), (name, ground)
    assert messages == []
    context.close()


def test_the_search_finds_a_budget_offline(site, chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    page.goto((site / "index.html").as_uri())
    page.locator("[data-md-component=search-query]").fill("budget")
    found = page.locator(".md-search-result__link")
    found.first.wait_for()
    links = [link.get_attribute("href") for link in found.all()]
    assert any("budget" in link or "weights" in link for link in links)
    context.close()
