"""Generated time series."""

import numpy as np
import pytest

from taynode.lab.data import oscillators, Series


def test_oscillators():
    series = oscillators(400, seed=0)
    assert len(series) == 400
    assert series.values.shape == series.mask.shape == (400, 60, 2)
    assert series.values.dtype == series.times.dtype == np.float32
    assert (series.times[0], series.times[-1]) == (0, 1)
    steps = np.diff(series.times)
    assert np.all(steps > 1e-3)
    # Irregular.
    assert steps.max() > 3 * steps.min()
    assert np.all(series.values[~series.mask] == 0)
    assert np.abs(series.values).max() < 1.3
    assert np.all(series.labels == 0)
    # Half of the entries, but for the gaps.
    assert 0.3 < series.mask.mean() < 0.5
    assert np.all(series.mask[:, 0])


def test_every_series_has_a_gap():
    series = oscillators(50, seed=0, observed=1.0)
    for mask in series.mask:
        missing = np.flatnonzero(~mask.any(1))
        np.testing.assert_array_equal(missing, np.arange(missing[0], missing[-1] + 1))
        np.testing.assert_array_equal(mask.any(1), mask.all(1))
        assert series.times[missing[-1]] - series.times[missing[0]] <= 0.3


def test_without_noise_they_are_oscillators():
    series = oscillators(200, seed=0, noise=0.0, observed=1.0)
    # A quarter of a period apart, so that they are the sides of a triangle.
    radius = np.hypot(series.values[..., 0], series.values[..., 1])
    ratios = []
    for x, mask in zip(radius, series.mask[..., 0], strict=True):
        rate = np.diff(np.log(x[mask])) / np.diff(series.times[mask])
        np.testing.assert_allclose(rate, np.mean(rate), atol=2e-3)
        ratios.append(-np.mean(rate))
    damped = np.array(ratios) > 0.25
    assert 0.35 < damped.mean() < 0.65
    assert np.abs(np.array(ratios)[~damped]).max() < 1e-3
    assert np.array(ratios)[damped].max() < 2.001


def test_the_seed_determines_them():
    first, again, other = (oscillators(5, seed=seed) for seed in [3, 3, 4])
    for name in "times", "values", "mask":
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.values, other.values)
    assert not np.array_equal(first.times, other.times)


def test_sizes():
    assert oscillators(0, seed=0).values.shape == (0, 60, 2)
    assert oscillators(3, seed=0, num_times=7, num_channels=4).values.shape == (3, 7, 4)
    with pytest.raises(ValueError, match="`num_times` must be at least 2, got 1"):
        oscillators(3, seed=0, num_times=1)
    with pytest.raises(ValueError, match=r"in \[0, 1\], got 1.5"):
        oscillators(3, seed=0, observed=1.5)


def test_shapes_must_agree():
    series = oscillators(3, seed=0)
    with pytest.raises(ValueError, match="Got 2 labels and 60 times, but values of shape"):
        Series(series.times, series.values, series.mask, series.labels[:2])
    with pytest.raises(ValueError, match=r"a mask of shape \(3, 60, 1\)"):
        Series(series.times, series.values, series.mask[..., :1], series.labels)
