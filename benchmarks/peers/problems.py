"""The problems on which libraries are compared, as arrays that all of them read."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Problem:
    """A vector field with an initial state.

    - `title`: for readers.
    - `kind`: `"mlp"`, `"flow"` (an MLP in the plane with its divergence) or `"image"` (convolutions
        with an estimate of their divergence).
    - `sizes`: the layers: widths or, for convolutions, channels.
    - `rows`: the number of samples.
    - `scale`: of the weights, in units of the usual ones: wild enough for some ten steps.
    - `per_sample`: whether each sample has its own steps.
    """

    title: str
    kind: str
    sizes: tuple[int, ...]
    rows: int
    scale: float
    per_sample: bool = False

    def arrays(self) -> dict[str, np.ndarray]:
        """Weights, biases and the initial state. Time is one more input of each layer."""
        draw = np.random.default_rng(0).normal
        out = {}
        for i, (m, n) in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True)):
            if self.kind == "image":
                out[f"W{i}"] = self.scale * draw(size=(n, m + 1, 3, 3)) / np.sqrt(9 * m)
            else:
                out[f"W{i}"] = self.scale * draw(size=(m + 1, n)) / np.sqrt(m)
            out[f"b{i}"] = np.zeros(n)
        shape = (1, SIDE, SIDE) if self.kind == "image" else self.sizes[:1]
        out["x"] = draw(size=(self.rows, *shape))
        out["noise"] = np.sign(draw(size=out["x"].shape))
        return {name: value.astype(np.float32) for name, value in out.items()}


SIDE = 14
TOLERANCE = 1e-5
FIRST_STEP = 0.1
PROBLEMS = {
    "mnist": Problem("784-100-784, 100 rows, jointly", "mlp", (784, 100, 784), 100, 2.0),
    "latent": Problem("20-50-20, 150 rows, jointly", "mlp", (20, 50, 20), 150, 2.0),
    "samples": Problem(
        "20-50-20, 100 samples, each by itself", "mlp", (20, 50, 20), 100, 2.0, True
    ),
    "flow": Problem("Flow 2-64-64-2 with divergence, 250 rows", "flow", (2, 64, 64, 2), 250, 2.0),
    "image": Problem(
        "Convolutional flow 14 x 14, 16 channels, 10 images", "image", (1, 16, 16, 1), 10, 1.5
    ),
}
