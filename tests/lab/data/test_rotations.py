"""Paths with a known distribution."""

import numpy as np
from scipy.linalg import expm

from taynode.lab.data.rotations import law, NOISE, RATE, rotations, TURN


def test_paths_have_the_law():
    """Of a linear equation, from a matrix exponential."""
    times = np.linspace(0.0, 1.0, 5)
    matrix = np.array([[-RATE, -TURN], [TURN, -RATE]])
    start = np.array([[0.6, 0.8]])
    found = law(start, times)
    np.testing.assert_allclose(found.mean[0], [expm(matrix * t) @ start[0] for t in times])
    # The covariance C solves dC/dt = A C + C A' + NOISE^2, and stays a multiple of the identity.
    steps = np.linspace(0.0, 1.0, 2001)
    kernels = NOISE**2 * np.exp(-2 * RATE * steps)
    np.testing.assert_allclose(found.variance[-1], np.trapezoid(kernels, steps), rtol=1e-6)

    paths = rotations(20_000, seed=3, num_times=5)
    assert paths.shape == (20_000, 5, 2)
    np.testing.assert_allclose(np.linalg.norm(paths[:, 0], axis=1), 1, rtol=1e-6)
    normal = paths - law(paths[:, 0], times).mean
    np.testing.assert_allclose(normal.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(normal.var(axis=0)[1:, 0], found.variance[1:], rtol=0.04)
    np.testing.assert_allclose(normal.var(axis=0)[1:, 1], found.variance[1:], rtol=0.04)
    np.testing.assert_array_equal(rotations(3, seed=1), rotations(3, seed=1))
