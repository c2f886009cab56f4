"""Formats, groups, headlines and the table: the numbers in words."""

import json
import math

import pytest

from taynode.lab.config import ConfigError
from taynode.lab.report.formats import change, duration, MINUS, number, percent, setting, SPACE
from taynode.lab.report.groups import group_runs, summarize
from taynode.lab.report.headline import headlines
from taynode.lab.report.runs import read_runs
from taynode.lab.report.table import as_json, as_rich, compare_table

from .synthetic import make_config, make_rows, write_pair, write_run


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (41.8, "41.8"),
        (0.00123, "0.00123"),
        (4.2e-7, "4.20e-7"),
        (-0.5, "-0.500"),
        (12345.6, "12,346"),
        (3.2e9, "3.20e9"),
        (0.0, "0"),
        (1200, "1,200"),
        (math.nan, "\N{EN DASH}"),
        (None, "\N{EN DASH}"),
        (True, "\N{EN DASH}"),
    ],
)
def test_number(value, text):
    assert number(value) == text.replace("-", MINUS)


def test_percent_change_and_duration():
    assert percent(0.0278) == f"2.8{SPACE}%"
    assert percent(0.0028) == f"0.28{SPACE}%"
    assert percent(0.0) == f"0.0{SPACE}%"
    assert change(41.8, 27.4) == f"{MINUS}34{SPACE}%"
    assert change(20.0, 25.0) == f"+25{SPACE}%"
    assert change(0.0, 25.0) == "\N{EN DASH}"
    assert [duration(x).replace(SPACE, " ") for x in (0.0123, 12.3, 250.0, 9000.0)] == [
        "12.3 ms",
        "12.3 s",
        "4.17 min",
        "2.50 h",
    ]


def test_settings_are_written_as_typed():
    values = [0.1, 1e-5, 1.4e-8, None, True, [60, 100], [], "dopri5"]
    shown = ["0.1", "1e-5", "1.4e-8", "none", "true", "60, 100", "none", "dopri5"]
    assert [setting(value) for value in values] == shown


def test_mean_and_deviation_over_seeds():
    summary = summarize([1.0, 2.0, 3.0, None, math.nan])
    assert (summary.mean, summary.std, summary.count) == (2.0, 1.0, 3)
    assert summarize([5.0]) == (5.0, None, 1)
    assert summarize([None]) == (None, None, 0)


def sentence(runs):
    ((text, remark),) = headlines(group_runs(read_runs(runs)))
    return text.replace(SPACE, " ").replace(MINUS, "-"), remark


def test_headline_of_a_pair(tmp_path):
    text, remark = sentence(write_pair(tmp_path, error=True))
    assert text == (
        "R_2 cuts evaluations from 41.8 to 27.4 (-34 %) at a test error of 2.8 % instead of 4.4 %."
    )
    assert remark == ""


def test_headline_over_seeds(tmp_path):
    runs = []
    for seed, extra in enumerate((-1.0, 0.0, 1.0)):
        for name, weight, nfe in (("none", 0.0, 40.0), ("r3", 0.01, 30.0)):
            rows = make_rows(nfe + extra, 0.05 + 0.01 * extra)
            config = make_config(name, weight, seed=seed)
            runs.append(write_run(tmp_path / f"{name}{seed}", config=config, rows=rows))
    text, _ = sentence(runs)
    assert text == (
        "R_3 cuts evaluations from 40.0 ± 1.0 to 30.0 ± 1.0 (-25 %, 3 seeds each) at a test error "
        "of 5.0 ± 1.0 %, the same as without."
    )
    groups = group_runs(read_runs(runs))
    assert [(group.label, len(group.runs)) for group in groups] == [
        ("no regularizer", 3),
        ("R_3", 3),
    ]


def test_headline_of_a_sweep_takes_the_cheapest_that_is_no_worse(tmp_path):
    settings = [("none", 0.0, 40.0, 0.05), ("r2", 0.1, 30.0, 0.04), ("r2", 9.0, 20.0, 0.5)]
    runs = [
        write_run(tmp_path / str(i), config=make_config(name, w), rows=make_rows(nfe, error))
        for i, (name, w, nfe, error) in enumerate(settings)
    ]
    text, remark = sentence(runs)
    assert text.startswith("R_2, weight 0.1 cuts evaluations from 40.0 to 30.0")
    assert remark == "Of 2 regularized ones, it is the cheapest that is no worse than without."
    text, remark = sentence([runs[0], runs[2]])
    assert text.startswith(
        "R_2 cuts evaluations from 40.0 to 20.0 (-50 %) at a test error of 50.0 %"
    )


def test_headlines_of_other_cases(tmp_path):
    alone = write_run(tmp_path / "a", config=make_config("r2", 0.1), rows=make_rows(30.0, None))
    assert sentence([alone])[0].startswith("toy with R_2: 30.0 evaluations per test sample at a ")
    more = write_run(tmp_path / "b", config=make_config("r3", 0.1), rows=make_rows(33.0, None))
    assert sentence([alone, more])[0].startswith("2 configurations of toy: from 30.0 evaluations")
    base = write_run(tmp_path / "c", config=make_config(), rows=make_rows(25.0, None))
    assert sentence([base, alone])[0].startswith("R_2 raises evaluations from 25.0 to 30.0 (+20 %)")
    other = write_run(tmp_path / "d", config=make_config(task="digits"), rows=make_rows(9.0, 0.1))
    texts = [text for text, _ in headlines(group_runs(read_runs([base, other])))]
    assert [text.partition(":")[0] for text in texts] == ["toy", "digits"]


def test_headline_says_what_else_may_be_the_reason(tmp_path):
    pair = write_pair(tmp_path)
    short = write_run(tmp_path / "s", config=make_config("r2", 0.1), rows=make_rows(9.0, None)[:3])
    assert sentence([pair[0], short])[1] == "But they were not trained equally long."
    config = make_config("r2", 0.1, batch_size=7)
    other = write_run(tmp_path / "o", config=config, rows=make_rows(9.0, None))
    assert sentence([pair[0], other])[1] == "But they differ in batch_size as well."


def test_headline_leaves_out_what_was_not_measured(tmp_path):
    bare = write_run(tmp_path / "bare", rows=[])
    assert sentence([*write_pair(tmp_path), bare])[0].startswith("R_2 cuts")
    assert sentence([bare])[0].startswith("Nothing was measured")


def test_labels_name_what_differs(tmp_path):
    configs = [
        make_config("r2", 0.1),
        make_config("r2", 0.1, batch_size=7),
        make_config("r2", 0.2),
        make_config("kinetic", 0.1),
    ]
    runs = [
        write_run(tmp_path / str(i), config=c, rows=make_rows(9.0, None))
        for i, c in enumerate(configs)
    ]
    groups = group_runs(read_runs(runs))
    assert [group.label for group in groups] == [
        "R_2, weight 0.1, batch_size 100",
        "R_2, weight 0.1, batch_size 7",
        "R_2, weight 0.2",
        "kinetic energy",
    ]
    assert len({group.color for group in groups}) == 4
    assert "g0" not in {group.color for group in groups}  # which is for no regularizer


def test_runs_of_one_name_are_told_apart(tmp_path):
    paths = [
        write_run(tmp_path / name / "run", config=make_config(), rows=make_rows(9.0, None))
        for name in "ab"
    ]
    assert [run.name for run in read_runs(paths)] == ["a/run", "b/run"]


def test_table_as_data(tmp_path):
    without, with_ = compare_table(write_pair(tmp_path, error=True))
    assert without["weight"] is None
    assert with_["regularizer"] == "r2"
    assert (with_["weight"], with_["quadrature"], with_["seed"]) == (0.1, "sampled", 0)
    assert with_["test_nfe"] == 27.4
    assert with_["test_error"] == pytest.approx(0.028)
    assert json.loads(as_json([without, with_])) == [without, with_]


def test_table_as_text(tmp_path):
    from rich.console import Console

    rows = make_rows(27.4, None)
    rows[-1]["test_loss"] = math.nan
    config = make_config("r2", 0.1)
    run = write_run(tmp_path / "[bold]|x", config=config, rows=rows)
    table = compare_table([run])
    assert table[0]["test_loss"] is None
    console = Console(width=250, record=True, file=open("/dev/null", "w"))
    with console.file:
        console.print(as_rich(table))
    text = console.export_text()
    assert "[bold]|x" in text
    assert "Test loss" not in text  # nothing is known of it


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is not a run"):
        compare_table([tmp_path])
    with pytest.raises(ConfigError, match="nothing to report"):
        compare_table([])
