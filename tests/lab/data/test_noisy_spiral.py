"""Trajectories of the noisy spiral have the law of its equation."""

import numpy as np
import pytest

from taynode.lab.data.noisy_spiral import MATRIX, moments, NOISE, noisy_spirals, START


NUM = 4000
# A limit for the largest of a hundred errors, in standard errors.
LARGEST = 5.0


@pytest.fixture(scope="module")
def paths():
    found = noisy_spirals(NUM, seed=0)
    assert found.shape == (NUM, 30, 2)
    np.testing.assert_array_equal(found[:, 0], np.tile(START, (NUM, 1)))
    np.testing.assert_array_equal(found[:3, -1], noisy_spirals(NUM, seed=0)[:3, -1])
    return found


def of_another_method(num_times, num_steps=40):
    """Trajectories by the method of Heun, for the Stratonovich equation of the same law."""
    random = np.random.default_rng(7)
    step = 1 / (num_steps * (num_times - 1))

    def slope(u, noise):
        cubes = u * u * u
        drift = np.stack([MATRIX[:, i] @ cubes.T for i in range(2)], axis=1) - 0.5 * NOISE**2 * u
        return step * drift + NOISE * u * noise

    u, found = np.tile(START, (NUM, 1)), []
    for _ in range(num_times - 1):
        for _ in range(num_steps):
            noise = np.sqrt(step) * random.standard_normal(u.shape)
            first = slope(u, noise)
            u = u + 0.5 * (first + slope(u + first, noise))
        found.append(u)
    return np.stack(found, axis=1)


def moments_with_errors(paths):
    """Means and variances, and their standard errors."""
    mean, variance = paths.mean(axis=0), paths.var(axis=0, ddof=1)
    fourth = np.mean((paths - mean) ** 4, axis=0)
    num = len(paths)
    return (mean, variance), (np.sqrt(variance / num), np.sqrt((fourth - variance**2) / num))


def test_moments_are_those_of_another_method(paths):
    (ours, mine), (theirs, other) = map(
        moments_with_errors, (paths[:, 1:], of_another_method(paths.shape[1]))
    )
    for a, b, error, more in zip(ours, theirs, mine, other, strict=True):
        assert np.all(np.abs(a - b) < LARGEST * np.hypot(error, more))
    found = moments(paths)
    np.testing.assert_allclose(found.mean[0, 1:], ours[0])
    np.testing.assert_allclose(found.variance[0, 1:], ours[1])
    np.testing.assert_array_equal(found.variance[0, 0], 0.0)


def test_fourth_powers_grow_as_the_formula_of_ito_says():
    """The turn keeps u_1^4 + u_2^4. What remains is the decay, and the growth due to noise."""
    paths = noisy_spirals(NUM, seed=1, num_times=101)
    fourth, sixth = (np.sum(paths**k, axis=-1) for k in (4, 6))
    rate = 4 * MATRIX[0, 0] * sixth + 6 * NOISE**2 * fourth
    rest = fourth[:, -1] - fourth[:, 0] - np.trapezoid(rate, dx=0.01, axis=1)
    assert abs(rest.mean()) < 4 * rest.std() / np.sqrt(NUM)
    # Were the equation that of Stratonovich, fourth powers would grow by a third more.
    more = np.trapezoid(2 * NOISE**2 * fourth, dx=0.01, axis=1)
    assert more.mean() > 6 * rest.std() / np.sqrt(NUM)
