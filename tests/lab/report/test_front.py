"""The page about a run that was made cheap, as data and as a person sees it in Chromium."""

import copy
import json
import re

import pytest

from taynode.lab.report.front import headline, write_front
from taynode.lab.report.front_figure import front_figure


def point(kind, nfe, loss, file=None, **test):
    return {"kind": kind, "nfe": nfe, "loss": loss, "weight": 0.1, "step": 5, "file": file, **test}


CONTENT = {
    "run": "/my runs/<digits>",
    "task": "digits",
    "data": "",
    "solver": "dopri5",
    "tolerance": 1e-5,
    "split": "valid",
    "budget": 30.0,
    "within": None,
    "regularizer": "r3",
    "message": "The budget of 30 evaluations is reached.",
    "chosen": 3,
    "points": [
        point("given", 43.25, 0.1, test_loss=0.12, test_error=0.03, test_nfe=43.5),
        point("scouted", 35.5, 0.2, "models/01-scouted.eqx"),
        # Its solve failed.
        point("scouted", None, None, "models/02-scouted.eqx"),
        point("refitted", 29.5, 0.11, "a/3", test_loss=0.12, test_error=0.03, test_nfe=29.6),
    ],
}


def changed(**values):
    return copy.deepcopy(CONTENT) | values


def test_headline():
    assert re.sub(r"\s", " ", headline(CONTENT)) == (
        "digits: 29.6 evaluations per test sample instead of 43.5 (\u221232 %), at a test error of "
        "3.0 %, as before."
    )
    # Not reached: what was reached is in the message.
    assert headline(changed(chosen=None, message="Not reached.")) == "Not reached."
    whole = headline(changed(chosen=None, message="", budget=None))
    assert whole.startswith("4 models of digits: from 43.2 evaluations per sample to 29.5")


def test_points_are_drawn_by_their_kinds():
    path, refitted, given, ring = front_figure(CONTENT)["data"]
    assert (path["ids"], path["x"], path["y"]) == (["1"], [35.5], [0.2])
    assert (refitted["ids"], refitted["x"], refitted["y"]) == (["3"], [29.5], [0.11])
    assert (given["ids"], given["x"], given["y"]) == (["0"], [43.25], [0.1])
    assert ring["x"] == []


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("eased")
    (path / "front.json").write_text(json.dumps(CONTENT))
    return write_front(path)


def test_a_point_is_picked_by_click_or_by_key(page, open_page):
    view = open_page(page, fresh=True)
    card = view.locator("[data-card]:visible")
    assert "29.5" in card.inner_text()
    assert f"taynode evaluate {page.parent}/a/3" in card.inner_text()
    view.locator("#front-plot .scatter").nth(2).locator("path.point").click(force=True)
    view.wait_for_selector("[data-card='0']:visible")
    assert "taynode evaluate '/my runs/<digits>'" in card.inner_text()
    assert "lab.load('/my runs/<digits>').model" in card.inner_text()
    view.locator("input[name=pick]:checked").press("ArrowDown")
    view.wait_for_selector("[data-card='1']:visible")
    assert card.count() == 1
    assert view.locator("#front-plot .scatter").nth(3).locator("path.point").count() == 1
