"""The digits that come with scikit-learn: nothing is downloaded."""

import numpy as np

from .errors import DataError
from .split import Examples, Split


NUM_TEST = 360


def load_digits(*, seed: int = 0) -> Split:
    """Handwritten digits: 1,437 images to train on and 360 to test on.

    Inputs are of shape (number, 8, 8) with values in [0, 1], labels are 0 to 9. There is no
    official test set: `seed` determines a split in which every digit has its share of both parts.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        advice = "Run `pip install 'taynode[data]'`."
        raise DataError(
            f"The digits are part of scikit-learn, which is missing. {advice}"
        ) from error

    pixels, labels = datasets.load_digits(return_X_y=True)
    images = (np.asarray(pixels).reshape(-1, 8, 8) / 16).astype(np.float32)
    labels = np.asarray(labels).astype(np.int32)
    is_test = _stratified(labels, NUM_TEST, seed)
    return Split(
        train=Examples(images[~is_test], labels[~is_test]),
        test=Examples(images[is_test], labels[is_test]),
    )


def _stratified(labels: np.ndarray, num: int, seed: int) -> np.ndarray:
    """A mask that chooses `num` examples, with every label in proportion."""
    # Unlike `default_rng`, this stream is the same in all versions of numpy, so the split is too.
    random = np.random.RandomState(seed)
    order = random.permutation(len(labels))
    classes, counts = np.unique(labels, return_counts=True)
    shares = counts * num / len(labels)
    quotas = np.floor(shares).astype(int)
    # Rounding down leaves a few to give away: to the classes that lost most.
    quotas[np.argsort(quotas - shares, kind="stable")[: num - quotas.sum()]] += 1
    mask = np.zeros(len(labels), bool)
    for value, quota in zip(classes, quotas, strict=True):
        mask[order[labels[order] == value][:quota]] = True
    return mask
