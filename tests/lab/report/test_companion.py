"""The companion of the paper as a person sees it, in Chromium."""

import json

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.companion import headline, write_companion
from taynode.lab.paper.fig2_solver_order import SolverOrder
from taynode.lab.paper.run import record_of
from taynode.lab.paper.summary import write_summary

from ..paper.synthetic import result_of
from ..paper.test_charts import WITHOUT_RUNS


@pytest.fixture
def root(tmp_path, monkeypatch):
    # It would measure something that takes a while.
    numbers = WITHOUT_RUNS["fig2-solver-order"]
    monkeypatch.setattr(SolverOrder, "numbers", lambda *args: numbers)
    for name in ("fig1-toy", "fig2-solver-order", "fig5-pareto", "table2-mnist-flow"):
        study = find_study(name)
        results = [result_of(job) for job in study.jobs("laptop", [0, 1, 2])]
        if name == "fig5-pareto":
            results = [result | {"state": "failed"} for result in results]
        record, _ = record_of(study, results, scale="laptop", seeds=[0, 1, 2])
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    return tmp_path


def test_summary_names_every_claim(root):
    text = write_summary(root).read_text()
    assert "![The same map, learned without and with regularization](fig1-toy.png)" in text
    assert "| [fig2-solver-order](#fig2-solver-order) |" in text
    title = find_study("fig5-pareto").title
    failed = f"| ? undecided | {title} |  | All unregularized runs failed. |"
    assert f"| [fig5-pareto](#fig5-pareto) {failed}" in text
    # A study without numbers has no figure.
    assert "fig5-pareto.png" not in text
    assert "| unregularized | 8 steps |" in text
    assert "; made up; 6 runs, 0.02 h of one core; jax 1.2.\n" in text


def test_companion_shows_every_study(root, open_page):
    page = open_page(write_companion(root, root / "page.html"))
    assert page.locator("[data-figure]").count() == 2 + 1 + 0 + 3
    assert page.locator(".waiting").count() == 0
    for plot in page.locator("[data-figure]").all():
        assert plot.locator("svg .main-svg, svg.main-svg").count() > 0
    # All names of colors have become colors, also in the scale of the heat map.
    figures = "[...document.querySelectorAll('[data-figure]')].map((x) => [x.data, x.layout])"
    assert '"@' not in page.evaluate(f"JSON.stringify({figures})")
    text = page.inner_text("body")
    assert "claims of the paper" in page.inner_text("h1")
    assert "unregularized, NFE" in text
    assert "All unregularized runs failed" in text
    assert "made up; 6 runs, 0.02 h of one core; jax 1.2" in text
    assert "Color: size of the third derivative" in text
    assert "taynode paper run table2-mnist-flow --scale laptop --seeds 3" in text


def test_headline_in_the_singular():
    assert headline(51, 25, 16) == "25 of 51 claims of the paper hold, 16 do not"
    assert headline(3, 1, 1) == "1 of 3 claims of the paper holds, 1 does not"
    assert headline(1, 0, 0) == "0 of 1 claim of the paper hold, 0 do not"
