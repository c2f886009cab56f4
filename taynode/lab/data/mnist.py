"""MNIST: handwritten digits of 28 x 28 pixels."""

from pathlib import Path

import numpy as np

from . import store
from .errors import DataError
from .idx import read_idx
from .progress import OnProgress
from .split import Examples, Split


def load_mnist(*, allow_download: bool = True, progress: OnProgress | None = None) -> Split:
    """MNIST: 60,000 training images and the 10,000 images of the official test set.

    Inputs have shape (number, 28, 28) and values in [0, 1]; labels are 0 to 9.

    **Arguments:**

    - `allow_download`, `progress`: as for `taynode.lab.data.store.locate`.
    """

    def read(part: str) -> Examples:
        names = f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"
        images, labels = (
            store.locate("mnist", name, allow_download=allow_download, progress=progress)
            for name in names
        )
        return read_examples(images, labels)

    return Split(train=read("train"), test=read("t10k"))


def read_examples(images: Path, labels: Path) -> Examples:
    """The contents of a file of images and of the file with their labels."""
    pixels, digits = read_idx(images), read_idx(labels)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[1:] != (28, 28):
        got = f"{pixels.dtype} of shape {pixels.shape}"
        raise DataError(f"{images} is corrupt: expected uint8 images of 28 x 28, got {got}.")
    if digits.dtype != np.uint8 or digits.ndim != 1:
        got = f"{digits.dtype} of shape {digits.shape}"
        raise DataError(f"{labels} is corrupt: expected a list of uint8, got {got}.")
    if len(pixels) != len(digits):
        got = f"{len(pixels)} and {len(digits)}"
        raise DataError(f"{images} and {labels} do not belong together: their counts are {got}.")
    if np.any(digits > 9):
        raise DataError(f"{labels} is corrupt: expected labels 0 to 9, got {digits.max()}.")
    return Examples(pixels.astype(np.float32) / np.float32(255), digits.astype(np.int32))
