"""PhysioNet 2012: split, scale, labels, and the cache of parsed files."""

import numpy as np
import pytest

from taynode.lab.data import DataError, fetch, load_physionet, physionet
from taynode.lab.data.physionet import load_records, split_patients
from taynode.lab.data.physionet_parse import PARAMETERS
from tests.lab.data.patients import as_patient, pack


RATE, VENTILATED = PARAMETERS.index("HR"), PARAMETERS.index("MechVent")
IDS = {"a": range(100, 130), "b": range(200, 220)}


def write_set(folder, name, *, values=None):
    """Patients whose heart rate is their number or what `values` says, and what became of them."""
    rate = {number: number for number in IDS[name]} | (values or {})
    files = {
        f"{number}.txt": as_patient(number, [f"01:00,HR,{rate[number]}", "02:00,MechVent,1"])
        for number in IDS[name]
    }
    pack(folder / f"set-{name}.tar.gz", files)
    lines = [f"{number},{number % 3 % 2}" for number in IDS[name]]
    text = "\n".join(["RecordID,In-hospital_death", *lines, ""])
    (folder / f"Outcomes-{name}.txt").write_text(text)


@pytest.fixture
def folder(cache, tmp_path, monkeypatch):
    """What `TAYNODE_DATA` names, with 50 patients."""
    folder = tmp_path / "own" / "physionet2012"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TAYNODE_DATA", str(folder.parent))
    for name in IDS:
        write_set(folder, name)
    return folder


def rates(series, split):
    """The heart rates, which are the numbers of patients."""
    scaled = series.values[:, 1, RATE]
    low, high = split.low[RATE], split.high[RATE]
    return np.round(scaled * (high - low) + low).astype(int).tolist()


def test_the_split(folder):
    split = load_physionet()
    assert (len(split.train), len(split.test)) == (40, 10)
    assert split.names == PARAMETERS
    for series in split.train, split.test:
        assert series.values.shape == (len(series), 49, 37)
        assert series.values.dtype == split.low.dtype == split.high.dtype == np.float32
        assert series.labels.dtype == np.int32
        np.testing.assert_array_equal(series.times, np.linspace(0, 1, 49, dtype=np.float32))
        assert np.all(series.values[~series.mask] == 0)
        assert np.all(series.mask[:, 1, RATE])
        assert series.mask.sum() == 2 * len(series)
        assert [number % 3 % 2 for number in rates(series, split)] == series.labels.tolist()
    train, test = rates(split.train, split), rates(split.test, split)
    assert sorted(train + test) == [*IDS["a"], *IDS["b"]]


def test_the_seed_determines_the_split(folder):
    chosen = lambda **kwargs: rates((split := load_physionet(**kwargs)).train, split)
    assert chosen(seed=3) == chosen(seed=3) == chosen(seed=3, sets=("b", "a", "b"))
    assert chosen(seed=3) != chosen(seed=4)
    assert len(chosen(sets=("b",))) == 16
    # Results are compared across machines and years: the default split must not change.
    train, test = split_patients(8000, seed=0)
    assert (len(train), len(test)) == (6400, 1600)
    assert train[:4].tolist() == [3069, 1675, 6385, 543]
    assert test[:4].tolist() == [6119, 7971, 6990, 6031]


def test_some_patients(folder):
    split = load_physionet(num_patients=7)
    assert (len(split.train), len(split.test)) == (5, 2)
    for num in 1, 51:
        with pytest.raises(DataError, match=f"must be from 2 to 50, got {num}"):
            load_physionet(num_patients=num)


def test_only_the_training_part_determines_the_scale(folder):
    before = load_physionet(sets=("a",))
    train, test = rates(before.train, before), rates(before.test, before)
    assert (before.low[RATE], before.high[RATE]) == (min(train), max(train))
    assert before.train.values.min() == 0
    assert before.train.values.max() == 1
    write_set(folder, "a", values={test[0]: 1000, test[1]: 0})
    after = load_physionet(sets=("a",))
    np.testing.assert_array_equal(after.train.values, before.train.values)
    np.testing.assert_array_equal(after.high, before.high)
    width = max(train) - min(train)
    expected = [(1000 - min(train)) / width, (0 - min(train)) / width]
    np.testing.assert_allclose(after.test.values[:2, 1, RATE], expected, rtol=1e-6)


def test_parameters_without_a_scale(folder):
    split = load_physionet(sets=("a",))
    # Constant: shifted, and still observed.
    assert (split.low[VENTILATED], split.high[VENTILATED]) == (1, 1)
    assert np.all(split.train.values[:, 2, VENTILATED] == 0)
    assert np.all(split.train.mask[:, 2, VENTILATED])
    # Observed in the test part alone.
    number = rates(split.test, split)[0]
    files = {f"{i}.txt": as_patient(i, ["01:00,HR,1"]) for i in IDS["a"]}
    files[f"{number}.txt"] = as_patient(number, ["01:00,HR,1", "01:00,Lactate,7"])
    pack(folder / "set-a.tar.gz", files)
    split = load_physionet(sets=("a",))
    lactate = PARAMETERS.index("Lactate")
    assert (split.low[lactate], split.high[lactate]) == (0, 0)
    assert not np.any(split.test.mask[..., lactate])
    assert np.all(split.test.values[..., lactate] == 0)


def test_labels_that_are_unknown(folder):
    (folder / "Outcomes-a.txt").unlink()
    split = load_physionet(sets=("a",))
    assert set(split.train.labels) == {-1}


def test_a_set_that_lacks_patients(folder):
    with (folder / "Outcomes-a.txt").open("a") as file:
        file.write("999,0\n")
    with pytest.raises(DataError, match=r"set-a is incomplete: it lacks 1 of the 31 .* 999"):
        load_physionet()


def test_outcomes_that_lack_patients(folder):
    """Cut at the end of a line, the file looks sound."""
    file = folder / "Outcomes-a.txt"
    text = file.read_text()
    file.write_text("".join(text.splitlines(keepends=True)[:11]))
    with pytest.raises(DataError, match=r"Outcomes-a.txt is incomplete: it lacks 20 of the 30"):
        load_physionet()
    file.write_text(text + "100,1\n")
    with pytest.raises(DataError, match=r"line 32 repeats patient 100"):
        load_physionet()


def test_sets_that_are_not_there(folder):
    with pytest.raises(
        DataError, match=r"missing: got no set-c.tar.gz or .* https://physionet.org"
    ):
        load_physionet(sets=("a", "c"))
    with pytest.raises(DataError, match="sets of PhysioNet 2012 are a, b, c, got 'd'"):
        load_physionet(sets=("d",))
    with pytest.raises(DataError, match="got none"):
        load_physionet(sets=())
    assert len(fetch("physionet2012")) == 4
    (folder / "set-b.tar.gz").unlink()
    with pytest.raises(DataError, match=r"missing: got no set-b.tar.gz"):
        fetch("physionet2012")


def test_sets_with_the_same_patients(folder):
    (folder / "set-b.tar.gz").write_bytes((folder / "set-a.tar.gz").read_bytes())
    (folder / "Outcomes-b.txt").unlink()
    with pytest.raises(DataError, match="a, b have patients in common"):
        load_physionet()


def test_files_are_parsed_once(folder, cache, monkeypatch):
    first = load_records("a")
    (parsed,) = (cache / "physionet2012").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == [
        *("Outcomes-a.txt", "Outcomes-b.txt", "set-a.tar.gz", "set-b.tar.gz")
    ]

    def refuse(files):
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(physionet, "parse_patients", refuse)
        again = load_records("a")
        for name in "ids", "static", "values", "mask", "num_rows":
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name), strict=True)
        # Other files, or another version of the parser.
        with pytest.raises(AssertionError):
            load_records("b")
        patch.setattr(physionet, "VERSION", 0)
        with pytest.raises(AssertionError):
            load_records("a")
    # What is damaged is parsed again.
    whole = parsed.read_bytes()
    for content in b"", b"nonsense", whole[:1000], whole[: len(whole) // 2]:
        parsed.write_bytes(content)
        np.testing.assert_array_equal(load_records("a").values, first.values)
        assert len(parsed.read_bytes()) == len(whole)


def test_a_cache_that_cannot_be_written(folder, cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where a folder should be")
    assert len(load_records("a").ids) == 30


def test_without_a_cache(folder, monkeypatch):
    monkeypatch.setattr(physionet.store, "cache_folder", lambda: None)
    assert len(load_records("a").ids) == 30
