"""Studies of given results, for print and for the page."""

import functools
import json

import pytest

from taynode.lab.config import ConfigError
from taynode.lab.paper import find_study, STUDIES
from taynode.lab.paper.chart import Chart, Heat, Line, Panel
from taynode.lab.paper.companion import write_companion
from taynode.lab.paper.print import figure_of, save
from taynode.lab.paper.run import record_of
from taynode.lab.paper.screen import figures_of

from .synthetic import result_of


COSTS = "milliseconds", "operations", "operations as written"
# These measure something themselves.
WITHOUT_RUNS = {
    "fig2-solver-order": {"steps": {"heun": [5, 40, 80, 90, 95, 99], 
        "bosh3": [4, 5, 50, 60, 70, 80]}},
    "taylor-cost": {
        "orders": [1, 2, 3],
        "Taylor mode": {name: [1.0, 2.0, 3.0] for name in COSTS},
        "nested jvp": {name: [1.0, 4.0, 16.0] for name in COSTS},
        "ratios": [[1.0, 1.1], [2.0, 2.1], [5.0, 5.5]],
    },
}  # fmt: skip


@functools.cache
def finished(name):
    """Results of all runs of a study."""
    return [result_of(job) for job in find_study(name).jobs("laptop", [0, 1, 2])]


def results_of(name):
    """The same, to be changed."""
    return [dict(result) for result in finished(name)]


def numbers_of(name, failed=()):
    study = find_study(name)
    if name in WITHOUT_RUNS:
        return study, WITHOUT_RUNS[name]
    results = results_of(name)
    for i in failed:
        results[i] |= {"state": "failed", "message": "Step 3 failed"}
    return study, study.numbers(results, "laptop")


def of_their_kind(names):
    """Studies as parameters; those that differ from an earlier one in their task alone are slow."""
    seen = set()
    for name in names:
        kind = type(find_study(name))
        yield name if kind not in seen else pytest.param(name, marks=pytest.mark.slow)
        seen.add(kind)


@pytest.mark.parametrize("name", list(of_their_kind(sorted(STUDIES.keys() - WITHOUT_RUNS.keys()))))
def test_a_single_seed_at_the_smallest_scale_decides_nothing(name):
    """It has fewer orders, weights, grids and evaluations."""
    study = find_study(name)
    numbers = study.numbers([result_of(job) for job in study.jobs("smoke", [0])], "smoke")
    assert study.chart(numbers).panels
    assert {claim.verdict for claim in study.claims(numbers)} == {"undecided"}


@pytest.mark.parametrize("name", list(of_their_kind(STUDIES)))
def test_every_study_is_drawn_twice(name):
    study, numbers = numbers_of(name)
    # As it comes back from a file.
    numbers = json.loads(json.dumps(numbers))
    chart = study.chart(numbers)
    figure_of(chart).draw_without_rendering()
    figures = figures_of(chart)
    assert len(figures) == len(chart.panels) > 0
    assert all(figure["data"] for figure in figures)
    json.dumps(figures, allow_nan=False)
    claims = study.claims(numbers)
    assert claims
    assert all(claim.measured and claim.rule for claim in claims)


FAILURES = {
    "the first seed": lambda config: config["seed"] == 0,
    "all that are not regularized": lambda config: config["regularizer"]["name"] == "none",
    "all of one order": lambda config: config["regularizer"]["name"] == "r4",
    "all that are regularized": lambda config: config["regularizer"]["name"] != "none",
    "all": lambda config: True,
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", list(of_their_kind(x for x in STUDIES if x not in WITHOUT_RUNS)))
def test_failed_runs_leave_claims_undecided(name, failure):
    """A failed run is a result, also where the study cannot do without it."""
    study = find_study(name)
    results = results_of(name)
    for result in results:
        if FAILURES[failure](result["config"]):
            result |= {"state": "failed", "message": "Step 3 failed", "measured": {}}
            result["row"], result["evaluations"] = {}, {}
    record, claims = record_of(study, results, scale="laptop", seeds=[0, 1, 2])
    json.dumps(record, allow_nan=failure in ("the first seed", "all of one order"))
    assert claims
    if failure == "all":
        # That all fail on a grid, regularized or not, is an answer.
        assert {claim.verdict for claim in claims} <= {"undecided"} | (
            {"does not hold"} if name == "table2-mnist-flow" else set()
        )
    if record["numbers"] is not None:
        figures_of(study.chart(record["numbers"]))


def test_a_row_whose_runs_all_failed_is_told():
    study = find_study("table4-miniboone")
    rows = len(study.rows)
    study, numbers = numbers_of("table4-miniboone", failed=[0, rows, 2 * rows])
    first = numbers["rows"][0]
    assert (first["failed"], first["NFE"]) == (3, [])
    assert study.table(numbers)[0]["runs"] == "3 of 3 failed"
    assert study.chart(numbers).panels[0].rows[0] == "unregularized, 4 steps (failed)"
    assert first["messages"] == ["Step 3 failed"] * 3


def test_marks_for_print_and_for_the_page(tmp_path):
    chart = Chart(
        [
            Panel([Line([1, 2], [3, None], "R_2", 1, y_error=[0.1, 0.2])], "a", x_log=True),
            Panel([Line([0, 1], [1, 2], values=[0.1, 10.0]), Line([0, 1], [0, 1], color=-1)]),
            Panel([Heat([[0.2, 0.8]], ["x", "y"], ["row"])]),
        ],
        values="size",
        low=0.1,
        high=10.0,
    )
    save(chart, tmp_path / "one.two")
    save(chart, tmp_path / "again")
    text = (tmp_path / "one.two.svg").read_text()
    # Text that can be searched, and the same file each time.
    assert ">size</text>" in text
    assert text == (tmp_path / "again.svg").read_text()
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".png") == [
        "again.png",
        "one.two.png",
    ]
    assert len(list(tmp_path.iterdir())) == 4
    first, second, third = figures_of(chart)
    assert first["data"][0]["name"] == "R<sub>2</sub>"
    assert first["layout"]["xaxis"]["type"] == "log"
    assert first["data"][0]["error_y"]["array"] == [0.1, 0.2]
    assert second["data"][0]["marker"]["color"] == ["@seq:0.000", "@seq:1.000"]
    assert second["data"][1]["hoverinfo"] == "skip"
    assert third["data"][0]["z"] == [[0.2, 0.8]]


def test_no_studies_and_broken_ones_are_named(tmp_path):
    with pytest.raises(ConfigError, match="has no studies; do some with"):
        write_companion(tmp_path, tmp_path / "page.html")
    (tmp_path / "fig1-toy.json").write_text('{"study": ')
    (tmp_path / "fig3-training.json").write_text('{"study": "fig3-training"}')
    with (
        pytest.warns(UserWarning, match=r"fig1-toy\.json is left out"),
        pytest.warns(UserWarning, match=r"fig3-training\.json is left out: it lacks claims"),
        pytest.raises(ConfigError, match="has no studies"),
    ):
        write_companion(tmp_path, tmp_path / "page.html")
    # The others are shown; of what cannot be drawn, the rest.
    study, numbers = numbers_of("fig10-nfe-variance")
    record = {
        "study": study.name,
        "title": study.title,
        "scale": "laptop",
        "seeds": [0, 1, 2],
        "claims": [vars(claim) for claim in study.claims(numbers)],
        "table": [],
        "data": [],
        "numbers": {"of": "another version"},
    }
    (tmp_path / f"{study.name}.json").write_text(json.dumps(record))
    with (
        pytest.warns(UserWarning, match=r"fig10-nfe-variance cannot be drawn \(KeyError"),
        pytest.warns(UserWarning, match="left out"),
    ):
        page = write_companion(tmp_path, tmp_path / "page.html")
    assert "not monotone" in page.read_text()
