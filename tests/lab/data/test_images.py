"""The IDX format, MNIST and the digits of scikit-learn."""

import gzip

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest

from taynode.lab.data import DataError, Examples, load_digits, load_mnist, Split, verify
from taynode.lab.data.idx import read_idx
from taynode.lab.data.mnist import read_examples
from tests.lab.data.idx_files import as_idx, CODES


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some-idx3-ubyte"


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory):
    return tmp_path_factory.mktemp("idx") / "file"


shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
arrays = st.sampled_from(sorted(CODES)).flatmap(lambda dtype: hnp.arrays(dtype, shapes))


@hypothesis.given(array=arrays, compressed=st.booleans())
def test_idx_round_trip(shared_path, array, compressed):
    data = as_idx(array)
    shared_path.write_bytes(gzip.compress(data) if compressed else data)
    result = read_idx(shared_path)
    assert result.dtype == array.dtype
    assert result.dtype.isnative
    assert result.flags.writeable
    np.testing.assert_array_equal(result, array, strict=True)


@hypothesis.given(array=arrays, data=st.data(), compressed=st.booleans())
def test_idx_cut_short(shared_path, array, data, compressed):
    whole = as_idx(array)
    whole = gzip.compress(whole) if compressed else whole
    end = data.draw(st.integers(0, len(whole) - 1))
    shared_path.write_bytes(whole[:end])
    with pytest.raises(DataError, match="truncated"):
        read_idx(shared_path)


@hypothesis.given(data=st.binary(max_size=64))
def test_idx_of_nonsense(shared_path, data):
    for prefix in b"", b"\0\0\x08", b"\x1f\x8b\x08", b"\x1f\x8b\x08" + bytes(7):
        shared_path.write_bytes(prefix + data)
        try:
            read_idx(shared_path)
        except DataError:
            pass


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "truncated: expected at least 4 bytes, got 0"),
        (b"\0\0\x08\x01\0\0", "truncated: expected 1 dimensions, got 0"),
        (b"\0\0\x08\x01\0\0\0\x03ab", r"truncated: shape \(3,\) takes 3 bytes, got 2"),
        (b"\0\0\x08\x01\0\0\0\x01ab", r"corrupt: shape \(1,\) takes 1 bytes, got 2"),
        (b"\0\0\x08\x03" + b"\xff" * 12, r"truncated: shape \(4294967295, .* got 0"),
        (b"\0\0\x0a\x01\0\0\0\x00", "no IDX file: its magic number is 0x00000a01"),
        (b"\x01\0\x08\x01\0\0\0\x00", "no IDX file: its magic number is 0x01000801"),
        (b"<html>", "no IDX file"),
    ],
)
@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
def test_idx_files_that_are_none(path, data, message, pack):
    path.write_bytes(pack(data))
    with pytest.raises(DataError, match=f"some-idx3-ubyte is {message}"):
        read_idx(path)


def test_idx_with_damaged_compression(path):
    whole = bytearray(gzip.compress(as_idx(np.arange(1000, dtype=np.int32))))
    # The checksum at the end, the compressed data, the header.
    for place in -8, len(whole) // 2, 2:
        damaged = whole.copy()
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="is corrupt"):
            read_idx(path)


def test_idx_that_is_not_there(path):
    with pytest.raises(DataError, match="cannot be read"):
        read_idx(path)


def test_mnist(small_mnist):
    split = load_mnist()
    for part, examples in [("train", split.train), ("t10k", split.test)]:
        images, labels = small_mnist[part]
        assert examples.inputs.dtype == np.float32
        assert examples.labels.dtype == np.int32
        np.testing.assert_array_equal(np.round(examples.inputs * 255), images)
        np.testing.assert_array_equal(examples.labels, labels)
        assert examples.inputs.min() >= 0
        assert examples.inputs.max() <= 1
        assert len(examples) == len(labels)


def test_mnist_without_the_network(small_mnist):
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte.gz is missing"):
        load_mnist(allow_download=False)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 28, 28), np.uint8), np.zeros(3, np.uint8), "counts are 2 and 3"),
        (np.zeros((2, 28, 27), np.uint8), np.zeros(2, np.uint8), r"images of 28 x 28, got uint8"),
        (np.zeros((2, 784), np.uint8), np.zeros(2, np.uint8), r"got uint8 of shape \(2, 784\)"),
        (np.zeros((2, 28, 28), np.int32), np.zeros(2, np.uint8), "got int32"),
        (np.zeros((2, 28, 28), np.uint8), np.zeros((2, 1), np.uint8), "a list of uint8"),
        (np.zeros((2, 28, 28), np.uint8), np.zeros(2, np.int8), "a list of uint8, got int8"),
        (np.zeros((2, 28, 28), np.uint8), np.full(2, 10, np.uint8), "labels 0 to 9, got 10"),
    ],
)
def test_mnist_files_that_do_not_fit(tmp_path, images, labels, message):
    (tmp_path / "images").write_bytes(as_idx(images))
    (tmp_path / "labels").write_bytes(as_idx(labels))
    with pytest.raises(DataError, match=message):
        read_examples(tmp_path / "images", tmp_path / "labels")


def test_the_real_mnist():
    if any(status.state == "missing" for status in verify("mnist")):
        pytest.skip("MNIST is neither in TAYNODE_DATA nor in the cache")
    split = load_mnist(allow_download=False)
    assert split.train.inputs.shape == (60_000, 28, 28)
    assert split.test.inputs.shape == (10_000, 28, 28)
    train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(split.train.labels).tolist() == train
    assert np.bincount(split.test.labels).tolist() == test
    inputs = split.train.inputs
    mean = np.mean(inputs, dtype=np.float64)
    variance = np.mean(np.square(inputs), dtype=np.float64) - mean**2
    assert mean == pytest.approx(0.13066, abs=1e-5)
    assert np.sqrt(variance) == pytest.approx(0.30811, abs=1e-5)
    assert (inputs.min(), inputs.max()) == (0, 1)


def test_digits():
    split = load_digits()
    assert split.train.inputs.shape == (1437, 8, 8)
    assert split.test.inputs.shape == (360, 8, 8)
    train, test = np.bincount(split.train.labels), np.bincount(split.test.labels)
    assert (train + test).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.all(np.abs(test - (train + test) * 360 / 1797) < 1)
    for examples in split.train, split.test:
        assert examples.inputs.dtype == np.float32
        assert (examples.inputs.min(), examples.inputs.max()) == (0, 1)


def test_the_split_of_the_digits_is_one():
    from sklearn import datasets

    rows = lambda examples: {x.tobytes() for x in examples.inputs}
    split = load_digits()
    # No two of these images are alike, so that each stands for itself.
    every = {x.tobytes() for x in (datasets.load_digits().images / 16).astype(np.float32)}
    assert len(every) == 1797
    assert rows(split.train) | rows(split.test) == every
    assert not rows(split.train) & rows(split.test)


def test_the_seed_determines_the_split_of_the_digits():
    first, again, other = load_digits(seed=3), load_digits(seed=3), load_digits(seed=4)
    np.testing.assert_array_equal(first.test.inputs, again.test.inputs)
    assert not np.array_equal(first.test.inputs, other.test.inputs)
    # Results are compared across machines and years: the default split must not change.
    test = load_digits().test
    assert test.labels[:10].tolist() == [4, 5, 6, 9, 4, 7, 8, 9, 9, 6]
    assert np.sum(16 * test.inputs[:5]) == 1583


def test_counts_must_agree():
    inputs = np.zeros((3, 2), np.float32)
    with pytest.raises(ValueError, match="Got 3 inputs, but 2 labels"):
        Examples(inputs, np.zeros(2, np.int32))
    examples = Examples(inputs, np.zeros(3, np.int32))
    with pytest.raises(ValueError, match=r"shape \(2,\), those for tests \(5,\)"):
        Split(examples, Examples(np.zeros((3, 5), np.float32), np.zeros(3, np.int32)))
