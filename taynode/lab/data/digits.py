"""The digits that are part of scikit-learn. They need no download."""

import numpy as np
from jaxtyping import Bool, Int32

from .errors import DataError
from .split import Examples, Split


NUM_TEST = 360


def load_digits(*, seed: int = 0) -> Split:
    """Handwritten digits: 1,437 training and 360 test images.

    Inputs have shape (number, 8, 8) and values in [0, 1]; labels are 0 to 9. There is no official
    test set, so `seed` determines a stratified split.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise DataError(
            "The digits are part of scikit-learn, which is missing. "
            "Run `pip install 'taynode[data]'`."
        ) from error

    pixels, labels = datasets.load_digits(return_X_y=True)
    images = (np.asarray(pixels).reshape(-1, 8, 8) / 16).astype(np.float32)
    labels = np.asarray(labels).astype(np.int32)
    is_test = _stratified(labels, NUM_TEST, seed)
    return Split(
        train=Examples(images[~is_test], labels[~is_test]),
        test=Examples(images[is_test], labels[is_test]),
    )


def _stratified(
    labels: Int32[np.ndarray, "total"], num: int, seed: int
) -> Bool[np.ndarray, "total"]:
    """A mask of `num` examples, with every label in proportion."""
    # Unlike `default_rng`, this stream is the same in all versions of numpy.
    random = np.random.RandomState(seed)
    order = random.permutation(len(labels))
    classes, counts = np.unique(labels, return_counts=True)
    shares = counts * num / len(labels)
    quotas = np.floor(shares).astype(int)
    # Rounding down leaves a few examples, which go to the classes that lost most.
    quotas[np.argsort(quotas - shares, kind="stable")[: num - quotas.sum()]] += 1
    mask = np.zeros(len(labels), bool)
    for value, quota in zip(classes, quotas, strict=True):
        mask[order[labels[order] == value][:quota]] = True
    return mask
