"""MINIBOONE in its three forms."""

import numpy as np
import pytest

from taynode.lab.data import DataError, fetch, load_miniboone, miniboone, registry, store
from taynode.lab.data.miniboone import DROPPED, read_npy, read_partial, read_raw


NUM = 203
# A list, as Python would store it: reading such a file could run any code.
PICKLE = b"\x80\x04]\x94K\x01a."


@pytest.fixture
def folder(cache, tmp_path, monkeypatch):
    """What `TAYNODE_DATA` names, and a benchmark that is as small as the files in it."""
    monkeypatch.setenv("TAYNODE_DATA", str(tmp_path))
    monkeypatch.setattr(miniboone, "NUM_EVENTS", NUM)
    return tmp_path


def write_raw(path, *, num_signal=NUM, num_outliers=3, num_background=40):
    """A small file as UCI has it. Returns the events that the benchmark would take from it."""
    random = np.random.default_rng(0)
    signal = random.normal(3, 2, (num_signal, 50)).round(5)
    outliers = random.permutation(num_signal + num_outliers)[:num_outliers]
    rows = np.full((num_signal + num_outliers, 50), -999.0)
    rows[~np.isin(np.arange(len(rows)), outliers)] = signal
    background = random.normal(9, 1, (num_background, 50))
    with path.open("w") as file:
        file.write(f"   {len(rows)} {num_background}\n")
        for row in np.concatenate([rows, background]):
            file.write("  " + "  ".join(f"{x:.5e}" for x in row) + "\n")
    return np.delete(signal, [i - 1 for i in DROPPED], axis=1)


def check(data, events):
    # By hand: 203 // 10 = 20 rows to test on, 183 // 10 = 18 to validate on, 165 to train on.
    known = events[:183]
    scaled = (events - np.mean(known, 0)) / np.sqrt(np.mean((known - known.mean(0)) ** 2, 0))
    assert (data.label, data.is_partial) == ("MINIBOONE", False)
    for part, begin, end in [(data.train, 0, 165), (data.valid, 165, 183), (data.test, 183, 203)]:
        assert part.dtype == np.float32
        np.testing.assert_allclose(part, scaled[begin:end], rtol=1e-4, atol=1e-5)


def test_both_public_forms(folder):
    events = write_raw(folder / "MiniBooNE_PID.txt")
    assert events.shape == (NUM, 43)
    check(load_miniboone(), events)
    # The file of the benchmark comes first.
    np.save(folder / "data.npy", events + np.arange(43.0) * events[::-1])
    check(load_miniboone(), events + np.arange(43.0) * events[::-1])


def test_what_is_called_miniboone_is_all_of_it(folder, monkeypatch):
    monkeypatch.setattr(miniboone, "NUM_EVENTS", 36_488)
    np.save(folder / "data.npy", np.ones((NUM, 43)))
    with pytest.raises(DataError, match=r"expected 36488 events, got 203. Put the published"):
        load_miniboone()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((4, 42)), r"rows of 43 floats, got float64 of shape \(4, 42\)"),
        (np.ones(43), r"got float64 of shape \(43,\)"),
        (np.ones((4, 43), int), "got int64"),
        (np.full((4, 43), np.nan), "172 values are not finite"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, array, message):
    np.save(tmp_path / "data.npy", array)
    with pytest.raises(DataError, match=f"data.npy is corrupt: .*{message}"):
        read_npy(tmp_path / "data.npy")


def test_features_that_never_change(folder):
    np.save(folder / "data.npy", np.ones((NUM, 43)))
    with pytest.raises(DataError, match=r"features \[0, 1, .*\] never change"):
        load_miniboone()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no MiniBooNE_PID.txt: expected two counts in its first line, got ''"),
        ("<html>\n", "no MiniBooNE_PID.txt: .* got '<html>'"),
        (
            "2 1\n" + "1 " * 50 + "\n",
            r"truncated or corrupt: .* says 2 \+ 1 rows, got 1",
        ),
        (
            "1 0\n" + ("1 " * 50 + "\n") * 2,
            r"truncated or corrupt: .* says 1 \+ 0 rows, got 2",
        ),
        ("0 1\n" + "1 " * 50 + "\n", r"truncated or corrupt: .* says 0 \+ 1 rows, got 1"),
        ("1 0\n1 2\n", "corrupt: expected rows of 50 numbers, got 2"),
        ("2 0\n" + "1 " * 50 + "\n1 2\n", "corrupt: "),
        ("1 0\n" + "one " * 50 + "\n", "corrupt: could not convert"),
        ("1 0\n" + "inf " * 50 + "\n", "corrupt: 43 values are not finite"),
        ("1 0\n" + "é " * 50 + "\n", "corrupt: "),
    ],
)
def test_raw_files_that_do_not_fit(tmp_path, text, message):
    path = tmp_path / "MiniBooNE_PID.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=f"MiniBooNE_PID.txt is {message}"):
        read_raw(path)


def test_files_that_are_no_arrays(tmp_path):
    path = tmp_path / "data.npy"
    for content in b"", b"nonsense", b"PK\x03\x04", PICKLE:
        path.write_bytes(content)
        for read in read_npy, read_partial:
            with pytest.raises(DataError, match=r"data.npy is truncated or corrupt"):
                read(path)
    for read in read_npy, read_partial, read_raw:
        with pytest.raises(DataError, match=r"none.npy"):
            read(tmp_path / "none.npy")


def test_partial_files_that_do_not_fit(tmp_path):
    path = tmp_path / "miniboone_partial.npz"
    rows = np.zeros((5, 43), np.float32)
    np.savez(path, train=rows, test=rows)
    with pytest.raises(DataError, match="expected train, val, test, got test, train"):
        read_partial(path)
    np.savez(path, train=rows, val=rows, test=rows)
    with pytest.raises(DataError, match="expected 2881 rows in train, got 5"):
        read_partial(path)
    with pytest.raises(DataError, match="expected one array, got several"):
        read_npy(path)


def test_it_has_to_be_fetched_by_hand(cache):
    for call in load_miniboone, lambda: fetch("miniboone"):
        with pytest.raises(
            DataError, match=r"by hand: get it from https://doi.org/10.24432/C5QC87"
        ):
            call()


def test_the_partial_file():
    path = store.find(registry.data_set("miniboone"), ("miniboone_partial.npz",))
    if path is None:
        pytest.skip("the partial MINIBOONE is neither in TAYNODE_DATA nor in the cache")
    data = read_partial(path)
    assert data.is_partial
    assert data.label == "MINIBOONE, 9.7 % of the training rows, full benchmark test set"
    shapes = [part.shape for part in (data.train, data.valid, data.test)]
    assert shapes == [(2881, 43), (3284, 43), (3648, 43)]
    # What a Gaussian scores is known; published for all training rows is -37.24.
    known = np.concatenate([data.train, data.valid]).astype(np.float64)
    rest = data.test - known.mean(0)
    covariance = np.cov(known.T, bias=True)
    squares = np.sum(rest * np.linalg.solve(covariance, rest.T).T, axis=1)
    score = -0.5 * np.mean(squares) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert score == pytest.approx(-37.44, abs=0.05)
