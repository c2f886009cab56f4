"""Generated spirals."""

import numpy as np
import pytest
from scipy.linalg import expm

from taynode.lab.data import spirals


def test_spirals():
    series = spirals(40, seed=0)
    assert series.values.shape == (40, 100, 3)
    assert series.values.dtype == series.times.dtype == np.float32
    assert (series.times[0], series.times[-1]) == (0, 1)
    steps = np.diff(series.times)
    assert np.all(steps > 1e-3)
    # Irregular.
    assert steps.max() > 3 * steps.min()
    assert np.all(series.mask)
    assert np.mean(series.labels) == 0.5
    # Other seeds have the same times, so that all series can be solved together.
    np.testing.assert_array_equal(series.times, spirals(4, seed=1).times)


@pytest.mark.parametrize("label", [0, 1])
def test_without_noise_they_solve_a_linear_equation(label):
    series = spirals(2, seed=3, num_times=20)
    sign = -1 if label else 1
    matrix = np.array([[-0.3, -2.0 * sign], [2.0 * sign, -0.3]])
    time, points = series.values[label, :, 0], series.values[label, :, 1:]
    np.testing.assert_allclose(time, 4 * np.pi * series.times, rtol=1e-6)
    expected = np.stack([expm(t * matrix) @ points[0] for t in time.astype(float)])
    np.testing.assert_allclose(points, expected, atol=2e-6)


def test_noise_is_that_of_the_coordinates_alone():
    clean, noisy = (spirals(50, seed=0, noise=noise).values for noise in (0.0, 0.1))
    np.testing.assert_array_equal(clean[..., 0], noisy[..., 0])
    assert np.std((noisy - clean)[..., 1:]) == pytest.approx(0.1, rel=0.03)


def test_a_series_needs_two_times():
    with pytest.raises(ValueError, match="`num_times` must be at least 2, got 1"):
        spirals(3, seed=0, num_times=1)
