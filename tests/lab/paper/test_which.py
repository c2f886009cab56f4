"""The page that says what to take, from numbers alone."""

import json
from pathlib import Path

import pytest

from taynode.lab.paper import find_study
from taynode.lab.paper.run import record_of
from taynode.lab.paper.which import BEGIN, END, NOTHING, read_tasks, write_page

from .synthetic import result_of


PAGE = Path(__file__).parents[3] / "docs" / "which-regularizer.md"
COSTS = {"r5": 0.01, "stiffness": 0.05, "error": 0.001}


def finished(root):
    """A study in which ERNODE has the least loss and fools the solver, and R_5 comes next."""
    study, results = find_study("rivals-digits"), []
    for job in study.jobs("laptop", [0, 1, 2]):
        charged, seed = job.config.regularizer, job.config.seed
        share = 1.0 if charged.budget is None else charged.budget / 118.0
        cost = COSTS.get(charged.name, 0.1) + 0.001 * seed
        result = result_of(job)
        loss = 1 + 0.1 * seed + cost * (1 / share - 1)
        result["row"] |= {"test_nfe": 118.0 * share, "test_loss": loss}
        errors = {"error": 4.0 if charged.name == "error" else 1.3, "nfe": 118.0 * share}
        solvers = dict.fromkeys(("dopri5", "tsit5", "bosh3"), errors | {"rejected": 0.02})
        result["measured"] = {"solving": {"solvers": solvers, "cheapest": {"nfe": 20.0}}}
        results.append(result)
    record, _ = record_of(study, results, scale="laptop", seeds=[0, 1, 2])
    (root / "rivals-digits.json").write_text(json.dumps(record))
    steps = {"R_5": {"ratio": 1.25}, "error of steps (ERNODE)": {"ratio": 1.02}}
    (root / "rivals-steps.json").write_text(json.dumps({"digits": {"initial": steps}}))


def test_the_page_says_nothing_before_there_are_numbers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n\n{BEGIN}\n\nold words\n\n{END}\n\nAfter.\n")
    for _ in range(2):
        write_page(tmp_path, page)
        assert page.read_text() == f"Before.\n\n{BEGIN}\n\n{NOTHING}\n\n{END}\n\nAfter.\n"
    page.write_text("No marks.")
    with pytest.raises(ValueError, match="has no marks"):
        write_page(tmp_path, page)


def test_what_is_best_follows_from_the_numbers(tmp_path):
    finished(tmp_path)
    (task,) = read_tasks(tmp_path)
    fooled = [name for name, state in task.fooled.items() if state == "yes"]
    assert fooled == ["error of a trial step (LRNDE)", "error of steps (ERNODE)"]
    for share in (0.75, 0.5):
        best = task.best(share)
        assert best is not None
        assert best.first == "R_5"
        # Differences are the same on all seeds, so nothing else can be as good.
        assert best.others == []
        assert "R_3" in best.reached
        assert "STEER" not in best.reached
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    text = write_page(tmp_path, page).read_text()
    assert "**4 of the five studies are not done yet.**" in text
    assert "Most often among the best: **R_5**, in 2 of 2 cases" in text
    assert "a step takes 1.25 times as long" in text
    assert "At most 2 % of the steps" in text
    (row,) = (line for line in text.splitlines() if line.startswith("| R_5 | +"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1].startswith("+0.0037")
    assert cells[2].startswith("+0.011")
    assert cells[3] == "0.5"
    assert cells[-3:] == ["1.3", "no", "1.25"]


def test_the_page_in_the_docs_is_up_to_date(tmp_path):
    """It says what the kept numbers say."""
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text())
    write_page(PAGE.parents[1] / "results" / "laptop", page)
    assert page.read_text() == PAGE.read_text()
