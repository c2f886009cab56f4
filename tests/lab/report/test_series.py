"""Figures of single series."""

import json
from types import SimpleNamespace

import jax.random as jr
import numpy as np
import pytest

from taynode.lab.config import SolveConfig
from taynode.lab.report.groups import Group
from taynode.lab.report.runs import StoredRun
from taynode.lab.report.series import series_arrays
from taynode.lab.report.series_figures import NEEDED, series_panels
from taynode.lab.tasks.latent import SeriesBatch
from taynode.models import LatentODE


KEY = jr.key(0)
TIMES = np.linspace(0.0, 1.0, 9)
# Arrays with an axis of series.
EACH = {f"series_{name}" for name in ("values", "seen", "mean", "low", "high")}


@pytest.fixture(scope="module")
def arrays():
    """Of a model of three channels, in hours and units."""
    model = LatentODE(3, 4, width=5, depth=1, noise_std=0.1, key=KEY)
    task = SimpleNamespace(
        times=TIMES,
        duration=(48.0, "hours"),
        channel_names=["A", "B", "C"],
        channel_range=(np.array([10.0, 0.0, 0.0]), np.array([30.0, 1.0, 1.0])),
    )
    values = np.asarray(jr.uniform(KEY, (5, 9, 3)))
    mask = np.ones((5, 9, 3), bool)
    # The first channel is observed most, the last series hardly at all.
    mask[:, ::2, 1:] = mask[:, 1, 2] = mask[4, 3:] = False
    data = SeriesBatch(values, mask)
    return series_arrays(task, model, SolveConfig(rtol=1e-3, atol=1e-3), data), data


def test_arrays_are_in_the_units_of_the_source(arrays):
    found, data = arrays
    assert found.keys() == NEEDED
    assert found["series_names"].tolist() == ["A", "B"]
    np.testing.assert_allclose(found["series_times"], 48 * TIMES)
    np.testing.assert_allclose(found["series_values"][0, :, 0], 10 + 20 * data.values[0, :, 0])
    assert np.all(found["series_low"] <= found["series_high"])
    # Noise alone makes the band this wide, in units.
    assert np.median(np.ptp([found["series_low"], found["series_high"]], axis=0)[..., 0]) > 4


def test_the_end_and_each_fourth_time_are_not_shown(arrays):
    found, _ = arrays
    seen = found["series_seen"][0, :, 0]
    assert seen.tolist() == [True, True, True, False, True, True, True, False, False]
    assert found["series_end"] == 36


def group_of(samples, index=0):
    run = StoredRun("run", {}, {}, (), samples, ())
    return Group("group", index, f"series{index}", False, (run,))


def test_groups_are_side_by_side(arrays):
    found, _ = arrays
    other = found | {"series_high": found["series_high"] + 100}
    groups = [group_of(samples, i) for i, samples in enumerate([found, other])]
    panels = series_panels(groups)
    assert [title for _, title, _ in panels[:2]] == ["A, series 1"] * 2
    ranges = [figure["layout"]["yaxis"]["range"] for _, _, figure in panels[:2]]
    assert ranges[0] == ranges[1]
    assert ranges[0][1] > 100
    assert len(panels) == 2 * 3 * 2
    band, line, seen, unseen = panels[0][2]["data"]
    assert (len(seen["x"]), len(unseen["x"])) == (6, 3)
    assert seen["marker"]["symbol"] != unseen["marker"]["symbol"]
    assert len(band["x"]) == 2 * len(line["x"])
    assert panels[0][2]["layout"]["xaxis"]["title"]["text"] == "Time, hours"
    assert series_panels([group_of({})]) == []


def test_a_failed_solve_leaves_holes():
    """The rest of a failed solve is not drawn, and the page can be written."""
    model = LatentODE(3, 4, width=5, depth=1, noise_std=0.1, key=KEY)
    task = SimpleNamespace(times=TIMES, duration=(1.0, ""), channel_names=None, channel_range=None)
    data = SeriesBatch(np.asarray(jr.uniform(KEY, (3, 9, 3))), np.ones((3, 9, 3), bool))
    too_few = SolveConfig(rtol=1e-9, atol=1e-9, max_steps=2)
    found = series_arrays(task, model, too_few, data)
    assert np.isnan(found["series_mean"][:, -1]).all()
    for _, _, figure in series_panels([group_of(found)]):
        json.dumps(figure, allow_nan=False)
        band, line, *_ = figure["data"]
        assert line["y"][-1] is None
        assert None not in band["y"]
        assert len(band["x"]) == len(band["y"]) < 2 * len(line["x"])


def test_other_series_are_drawn_apart(arrays):
    """Those of another task, with other channels, or other patients of the same."""
    found, _ = arrays
    renamed = found | {"series_names": np.array(["D", "E"])}
    fewer = {name: x[:1] if name in EACH else x for name, x in found.items()}
    groups = [group_of(samples, i) for i, samples in enumerate([found, renamed, fewer, found])]
    panels = series_panels(groups)
    assert len(panels) == 2 * 3 * 2 + 3 * 2 + 2
    drawn = [(group.color, title) for group, title, _ in panels]
    assert drawn[:2] == [("series0", "A, series 1"), ("series3", "A, series 1")]
    assert ("series1", "D, series 1") in drawn
    assert [title for color, title in drawn if color == "series2"] == ["A, series 1", "B, series 1"]
