"""Generated data: shapes, seeds, and what is known of each density."""

import numpy as np
import pytest

from taynode.lab.data import checkerboard, cubic_map, DENSITIES, eight_gaussians, pinwheel, rings
from taynode.lab.data.synthetic import two_moons


NUM = 20_000


@pytest.mark.parametrize("name", sorted(DENSITIES))
def test_densities(name):
    points = DENSITIES[name](NUM, seed=0)
    assert points.shape == (NUM, 2)
    assert points.dtype == np.float32
    assert np.abs(points).max() < 5.5
    assert np.quantile(np.abs(points), 0.999) < 4.5
    np.testing.assert_array_equal(points, DENSITIES[name](NUM, seed=0))
    assert not np.array_equal(points, DENSITIES[name](NUM, seed=1))
    # A batch is a fair sample wherever it is cut: nothing is sorted.
    np.testing.assert_allclose(points[: NUM // 2].mean(0), points[NUM // 2 :].mean(0), atol=0.15)
    for num in 0, 1, 7:
        assert DENSITIES[name](num, seed=0).shape == (num, 2)


def test_two_moons():
    points = (two_moons(NUM, seed=0) - np.array([-1, -0.2])) / 2
    upper = np.hypot(points[:, 0], points[:, 1]) - 1
    lower = np.hypot(points[:, 0] - 1, points[:, 1] - 0.5) - 1
    # The distance from the nearer arc is the noise.
    distance = np.where(np.abs(upper) < np.abs(lower), upper, lower)
    assert np.std(distance) == pytest.approx(0.1, rel=0.1)
    assert np.mean(np.abs(upper) < np.abs(lower)) == pytest.approx(0.5, abs=0.03)


def test_pinwheel():
    points = pinwheel(NUM, seed=0) / 2
    # The radius is `along` but for the thickness of the arms, so the bend can be undone.
    radius = np.hypot(*points.T)
    angle = np.arctan2(points[:, 1], points[:, 0]) - 0.25 * np.exp(radius)
    assert np.mean(radius) == pytest.approx(1, abs=0.02)
    assert np.abs(np.mean(np.exp(5j * angle))) > 0.75
    for order in 1, 2, 3, 4:
        assert np.abs(np.mean(np.exp(1j * order * angle))) < 0.05


def test_checkerboard():
    points = checkerboard(NUM, seed=0)
    assert np.abs(points).max() <= 4
    column, row = np.clip(np.floor((points + 4) / 2), 0, 3).astype(int).T
    assert np.all((column + row) % 2 == 0)
    counts = np.bincount(4 * column + row, minlength=16)
    np.testing.assert_allclose(counts[counts > 0], NUM / 8, rtol=0.1)
    assert np.sum(counts > 0) == 8


def test_eight_gaussians():
    points = eight_gaussians(NUM, seed=0) * np.sqrt(2)
    index = np.round(np.arctan2(points[:, 1], points[:, 0]) / (np.pi / 4)) % 8
    center = 4 * np.exp(1j * np.pi / 4 * index)
    noise = points - np.stack([center.real, center.imag], axis=-1)
    np.testing.assert_allclose(np.std(noise, axis=0), 0.5, rtol=0.03)
    np.testing.assert_allclose(np.bincount(index.astype(int)), NUM / 8, rtol=0.1)


def test_rings():
    radius = np.hypot(*rings(NUM, seed=0).T)
    index = np.round(radius / 0.75)
    assert set(index) == {1, 2, 3, 4}
    assert np.std(radius - 0.75 * index) == pytest.approx(0.08, rel=0.05)
    np.testing.assert_allclose(np.bincount(index.astype(int))[1:], NUM / 4, rtol=0.1)


def test_cubic_map():
    z, target = cubic_map(1000, seed=0)
    assert z.shape == target.shape == (1000, 1)
    assert z.dtype == target.dtype == np.float32
    np.testing.assert_allclose(target, z + z**3, rtol=1e-5)
    assert 0.99 < np.abs(z).max() <= 1
    wide, _ = cubic_map(1000, seed=0, bound=2.0)
    np.testing.assert_allclose(wide, 2 * z, rtol=1e-6)
