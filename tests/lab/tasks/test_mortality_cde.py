"""PhysioNet as controls of a neural CDE."""

import dataclasses

import numpy as np
import pytest

from taynode import lab
from taynode.lab.data import DataError
from taynode.lab.data.series import Series
from taynode.lab.tasks.mortality_cde import channels_of, HOURS


def test_channels_know_the_past_only():
    times = np.linspace(0, 1, 9).astype(np.float32)
    values, mask = np.zeros((1, 9, 2), np.float32), np.zeros((1, 9, 2), bool)
    for hour, channel, value in ((0, 0, 0.3), (3, 0, 0.5), (4, 0, 0.7), (5, 0, 0.9), (6, 1, 0.2)):
        values[0, hour, channel], mask[0, hour, channel] = value, True
    found = channels_of(Series(times, values, mask, np.zeros(1, np.int32)))
    assert HOURS == 4
    expected = [
        [0.0, 0.3, 0.0, 1 / 9, 0.0],
        [0.5, 0.7, 0.0, 3 / 9, 0.0],
        [1.0, 0.9, 0.2, 4 / 9, 1 / 9],
    ]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


@pytest.mark.slow
def test_a_run_reports_the_area_under_the_curve(tmp_path):
    task = lab.find_task("physionet-cde")
    task.scale = "smoke"
    try:
        task.load()
    except DataError:
        pytest.skip("PhysioNet is neither in TAYNODE_DATA nor in the cache")
    settings = dataclasses.replace(task.defaults("smoke"), eval_samples=50, final_samples=50)
    row = lab.train(settings, task, tmp_path / "run").rows()[-1]
    assert 0 <= row["test_auc"] <= 1
    assert row["test_nfe"] >= 6 * 12
