"""Generated data: densities in the plane, and the toy regression problem.

The densities have the usual shapes and scales of examples of continuous normalizing flows. Nearly
all of their mass lies within [-4.5, 4.5] x [-4.5, 4.5].
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float32


def two_moons(num: int, *, seed: int) -> Float32[np.ndarray, "{num} 2"]:
    """Two interleaved half circles, with Gaussian noise."""
    random = np.random.default_rng(seed)
    angle = np.pi * random.random(num)
    upper = random.random(num) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    points = np.stack([x, y], axis=-1) + 0.1 * random.standard_normal((num, 2))
    return (2 * points + np.array([-1, -0.2])).astype(np.float32)


def pinwheel(num: int, *, seed: int) -> Float32[np.ndarray, "{num} 2"]:
    """Five Gaussian arms, bent into a spiral."""
    random = np.random.default_rng(seed)
    along = 1 + 0.3 * random.standard_normal(num)
    across = 0.1 * random.standard_normal(num)
    angle = 2 * np.pi * random.integers(5, size=num) / 5 + 0.25 * np.exp(along)
    cos, sin = np.cos(angle), np.sin(angle)
    points = np.stack([along * cos - across * sin, along * sin + across * cos], axis=-1)
    return (2 * points).astype(np.float32)


def checkerboard(num: int, *, seed: int) -> Float32[np.ndarray, "{num} 2"]:
    """The uniform density on the black squares of a 4 x 4 board, which covers [-4, 4] x [-4, 4]."""
    random = np.random.default_rng(seed)
    x, y = random.random((2, num))
    column = random.integers(4, size=num)
    row = 2 * random.integers(2, size=num) + column % 2
    return (2 * np.stack([x + column, y + row], axis=-1) - 4).astype(np.float32)


def eight_gaussians(num: int, *, seed: int) -> Float32[np.ndarray, "{num} 2"]:
    """Eight Gaussians on a circle of radius 4 / sqrt(2), each of deviation 0.5 / sqrt(2)."""
    random = np.random.default_rng(seed)
    angle = 2 * np.pi * random.integers(8, size=num) / 8
    centers = 4 * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    points = centers + 0.5 * random.standard_normal((num, 2))
    return (points / np.sqrt(2)).astype(np.float32)


def rings(num: int, *, seed: int) -> Float32[np.ndarray, "{num} 2"]:
    """Four concentric circles of radius 0.75, 1.5, 2.25 and 3, with Gaussian noise."""
    random = np.random.default_rng(seed)
    radius = 0.75 * random.integers(1, 5, size=num)
    angle = 2 * np.pi * random.random(num)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return (points + 0.08 * random.standard_normal((num, 2))).astype(np.float32)


DENSITIES: dict[str, Callable[..., np.ndarray]] = {
    "two_moons": two_moons,
    "pinwheel": pinwheel,
    "checkerboard": checkerboard,
    "eight_gaussians": eight_gaussians,
    "rings": rings,
}


def cubic_map(
    num: int, *, seed: int, bound: float = 1.0
) -> tuple[Float32[np.ndarray, "{num} 1"], Float32[np.ndarray, "{num} 1"]]:
    """The toy regression problem: z and z + z^3, with z uniform in [-bound, bound]."""
    random = np.random.default_rng(seed)
    z = random.uniform(-bound, bound, (num, 1))
    return z.astype(np.float32), (z + z**3).astype(np.float32)
