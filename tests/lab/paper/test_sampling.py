"""Distances of samples."""

import numpy as np
import pytest
from scipy.stats import energy_distance as energy_in_one_dimension, wasserstein_distance

from taynode.lab.paper.sampling import NUM_FRESH, sliced_wasserstein, Truth
from taynode.lab.tasks.flow_matching import MatchedTwoMoons


DRAW = np.random.default_rng(0).normal


def test_energy_distance_is_that_of_scipy_but_for_its_bias():
    x, y = DRAW(size=(500, 1)), DRAW(size=(400, 1)) + 1.0
    # SciPy has the square root of it, with pairs of a point with itself.
    squared = energy_in_one_dimension(x[:, 0], y[:, 0]) ** 2
    within = [np.abs(a - a.T).mean() / (len(a) - 1) for a in (x, y)]
    assert Truth(y).energy_distance(x) == pytest.approx(squared - sum(within), rel=1e-9)


def test_equal_distributions_have_no_energy_distance_in_the_mean():
    found = [Truth(DRAW(size=(100, 3))).energy_distance(DRAW(size=(100, 3))) for _ in range(200)]
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(200)


def test_sliced_distance_is_that_of_scipy_in_one_dimension():
    x, y = DRAW(size=(300, 1)), 2 * DRAW(size=(300, 1))
    expected = wasserstein_distance(x[:, 0], y[:, 0])
    assert sliced_wasserstein(x, y) == pytest.approx(expected, rel=1e-9)


def test_a_perfect_sampler_is_seen_as_one():
    """With points enough that the noise is well below what samples of few steps have."""
    make = MatchedTwoMoons().fresh
    found = Truth(make(NUM_FRESH, seed=2)).energy_distance(make(NUM_FRESH, seed=3))
    assert abs(found) < 3e-3
