"""The companion of the paper as a person sees it, in Chromium."""

import json

import pytest

from taynode.paper.companion import write_companion
from taynode.paper.run import tell

from ..paper.test_charts import numbers_of


@pytest.fixture
def root(tmp_path):
    for name in ("fig1-toy", "fig2-solver-order", "fig5-pareto", "table2-mnist-flow"):
        study, numbers = numbers_of(name)
        told, _ = tell(study, numbers, scale="laptop", seeds=[0, 1, 2])
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    return tmp_path


def test_companion_shows_every_study(root, open_page):
    page = open_page(write_companion(root, root / "page.html"))
    assert page.locator("[data-figure]").count() == 2 + 1 + 3 + 3
    assert page.locator(".waiting").count() == 0
    for plot in page.locator("[data-figure]").all():
        assert plot.locator("svg .main-svg, svg.main-svg").count() > 0
    text = page.inner_text("body")
    assert "claims hold" in text
    assert "Color: size of the third derivative" in text
    assert "taynode paper run table2-mnist-flow --scale laptop --seeds 3" in text
