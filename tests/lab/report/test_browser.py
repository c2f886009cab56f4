"""The page as a person sees it, in Chromium."""

import pytest

from taynode.lab.report.page import write_report

from .synthetic import make_config, make_rows, make_samples, write_pair, write_run


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages about one- and many-dimensional paths, a sweep, and a run with nothing to draw."""
    path = tmp_path_factory.mktemp("pages")
    sweep = [
        write_run(
            path / f"sweep{w}",
            config=make_config("r2", w, task="digits"),
            rows=make_rows(40 - 30 * w, 0.05 + w),
            samples=make_samples(44 - round(50 * w), size=3),
        )
        for w in (0.01, 0.1, 0.2, 0.4)
    ]
    bare = write_run(path / "bare", config=make_config(), rows=[])
    runs = {
        "line": write_pair(path / "line"),
        "plane": write_pair(path / "plane", size=12, error=True),
        "sweep": sweep,
        "bare": [bare],
    }
    return {name: write_report(paths, path / f"{name}.html") for name, paths in runs.items()}


FIGURES = {"line": 6, "plane": 7, "sweep": 10, "bare": 0}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn(pages, open_page, name):
    page = open_page(pages[name])
    assert page.locator("[data-figure]").count() == FIGURES[name]
    assert page.locator(".waiting").count() == 0
    for plot in page.locator("[data-figure]").all():
        marks = plot.locator("svg .trace path")
        assert marks.count() > 0
        box = plot.locator(".plotly .main-svg").first.bounding_box()
        assert box["width"] > 250
        assert box["height"] > 150


def test_nothing_to_draw_is_said(pages, open_page):
    page = open_page(pages["bare"])
    assert page.locator(".nothing:visible").count() == 3
    assert "samples.npz is missing" in page.inner_text(".notes")


@pytest.mark.parametrize(
    ("figure", "text"),
    [("training-nfe", "27.4"), ("nfe-test", "of test samples"), ("paths-0", "derivative 2")],
)
def test_hover_shows_a_label(pages, open_page, figure, text):
    page = open_page(pages["plane"])
    plot = page.locator(f"#{figure}")
    plot.scroll_into_view_if_needed()
    # The tallest mark, and of equals the last: a bar, the last marker of a curve, a dot.
    marks = plot.locator("svg .trace .point path, svg .trace path.point").all()
    boxes = [box for mark in marks if (box := mark.bounding_box())]
    box = max(reversed(boxes), key=lambda box: round(box["height"]))
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 3, y - 3)
    page.mouse.move(x, y)
    label = plot.locator(".hoverlayer text")
    label.first.wait_for(state="attached")
    assert text in " ".join(label.all_text_contents())


def names(page):
    return page.locator("table.sortable tbody th").all_inner_texts()


def head(page, title):
    return page.locator("table.sortable thead th", has_text=title).first


def test_a_click_sorts(pages, open_page):
    page = open_page(pages["sweep"])
    first = ["sweep0.01", "sweep0.1", "sweep0.2", "sweep0.4"]
    assert names(page) == first
    weight = head(page, "Weight")
    weight.locator("button").click()
    assert weight.get_attribute("aria-sort") == "ascending"
    assert names(page) == first
    weight.locator("button").click()
    assert weight.get_attribute("aria-sort") == "descending"
    assert names(page) == first[::-1]
    head(page, "Seed").locator("button").click()
    assert weight.get_attribute("aria-sort") == "none"
    # By keyboard as well; evaluations fall with the weight.
    head(page, "NFE").locator("button").focus()
    page.keyboard.press("Enter")
    assert names(page) == first[::-1]


def test_what_is_missing_is_sorted_last(pages, open_page):
    page = open_page(pages["line"])
    weight = head(page, "Weight").locator("button")
    for _ in range(2):
        weight.click()
        assert names(page) == ["with", "without"]


def test_theme_follows_the_system_and_the_button(pages, open_page):
    page = open_page(pages["line"], fresh=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    tick = "getComputedStyle(document.querySelector('#training-nfe .xtick text')).fill"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"{tick} === 'rgb(167, 175, 186)'")
    assert page.evaluate(ground) == "rgb(18, 20, 24)"
    page.locator("#theme").click()
    assert page.evaluate(ground) == "rgb(247, 247, 245)"
    page.wait_for_function(f"{tick} === 'rgb(86, 94, 105)'")
    page.locator("#theme").click()
    page.wait_for_function(f"{tick} === 'rgb(167, 175, 186)'")
    page.locator("#theme").click()
    page.reload()
    page.wait_for_selector("html[data-drawn]", state="attached")
    assert page.evaluate(ground) == "rgb(247, 247, 245)"  # it is remembered


@pytest.mark.slow
def test_legend_and_width(pages, open_page):
    """The legend hides a group everywhere; figures follow the width of the window."""
    page = open_page(pages["line"], fresh=True)
    bars = page.locator("#nfe-test .bars")
    assert bars.count() == 2
    page.locator("#training .legend button").first.click()
    page.wait_for_function("document.querySelectorAll('#nfe-test .bars').length === 1")
    other = page.locator("#evaluations .legend button").first
    assert other.get_attribute("aria-pressed") == "false"
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(
        "document.querySelector('#training-nfe .main-svg').getBoundingClientRect().width"
        " <= document.querySelector('#training-nfe').clientWidth"
    )
    assert page.evaluate("document.documentElement.scrollWidth") == 700


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_phone(pages, open_page, name):
    page = open_page(pages[name], width=390, height=844, touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("document.body.scrollWidth") <= 390
    for plot in page.locator("[data-figure]").all():
        assert plot.locator(".main-svg").first.bounding_box()["width"] <= 390
    # Tables scroll by themselves; that of a run without metrics is narrow.
    table = page.locator("#runs .scroll")
    assert table.evaluate("e => e.scrollWidth > e.clientWidth") == (name != "bare")
    # A finger on a figure moves the page: no dragging is caught.
    plots = "[...document.querySelectorAll('[data-figure]')]"
    assert page.evaluate(f"{plots}.every(e => e._fullLayout.dragmode === false)")


def test_nothing_jumps(pages, open_page):
    page = open_page(pages["plane"])
    shift = page.evaluate(
        """() => new Promise((done) => {
            let sum = 0;
            const add = (list) => list.getEntries().forEach((e) => (sum += e.value));
            new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
            setTimeout(() => done(sum), 200);
        })"""
    )
    assert shift < 0.02


def test_copy_gives_the_command(pages, open_page):
    page = open_page(pages["line"])
    button = page.locator(".copy").nth(1)
    button.click()
    page.wait_for_function("document.querySelectorAll('.copy')[1].textContent !== 'Copy'")
    code = page.locator(".command code").nth(1).inner_text()
    assert code.startswith("taynode train toy --scale laptop --regularizer r2 --weight 0.1")
