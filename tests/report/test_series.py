"""What is shown of single series."""

from types import SimpleNamespace

import jax.random as jr
import numpy as np
import pytest

from taynode.models import LatentODE
from taynode.report.groups import Group
from taynode.report.runs import Run
from taynode.report.series import series_arrays
from taynode.report.series_figures import NEEDED, series_panels
from taynode.tasks.latent import SeriesBatch
from taynode.training.config import SolveConfig


KEY = jr.key(0)
TIMES = np.linspace(0.0, 1.0, 9)


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
    run = Run("run", {}, {}, (), samples, ())
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
