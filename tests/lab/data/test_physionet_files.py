"""PhysioNet 2012: what is in the files, and what is said of files that are damaged."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from taynode.lab.data import DataError, registry, store
from taynode.lab.data.physionet_files import digest, patient_files
from taynode.lab.data.physionet_parse import (
    PARAMETERS,
    parse_outcomes,
    parse_patients,
    Records,
    STATIC,
)
from tests.lab.data.patients import as_patient, pack


ENDINGS = [".tar.gz", ".tgz", ".tar.xz", ".tar", ".zip", ""]
FILES = {
    f"{number}.txt": as_patient(number, [f"01:00,HR,{number}", "02:00,Weight,80.5"])
    for number in [132541, 132539, 132540]
}


def parse(*patients):
    files = [(f"{number}.txt", as_patient(number, rows)) for number, rows in patients]
    return parse_patients(files)


def assert_same(first: Records, second: Records):
    for name in "ids", "static", "values", "mask", "num_rows":
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), strict=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_archives_and_folders(tmp_path, ending):
    path = tmp_path / f"set-a{ending}"
    pack(path, FILES)
    records = parse_patients(patient_files(path))
    assert records.ids.tolist() == [132539, 132540, 132541]
    assert records.values[:, 1, PARAMETERS.index("HR")].tolist() == [132539, 132540, 132541]
    assert_same(records, parse_patients(FILES.items()))
    before = digest(path)
    assert before == digest(path)
    pack(path, FILES | {"132539.txt": as_patient(132539, ["01:00,HR,61"])})
    assert digest(path) != before


@pytest.mark.parametrize("ending", ENDINGS[:-1])
def test_truncated_archives(tmp_path, ending):
    path = tmp_path / f"set-a{ending}"
    pack(path, FILES)
    whole = path.read_bytes()
    for size in 0, 10, len(whole) // 5, len(whole) // 3:
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"set-a.* is truncated or corrupt: .* get it again"):
            list(patient_files(path))


def test_a_tar_that_was_cut_between_two_files(tmp_path):
    """Python takes it for a whole one."""
    path = tmp_path / "set-a.tar"
    pack(path, FILES)
    # The header of the folder, then header and content of a patient.
    path.write_bytes(path.read_bytes()[: 512 + 2 * 512])
    with pytest.raises(DataError, match="is truncated or corrupt: no file begins at byte 1536"):
        list(patient_files(path))


@pytest.mark.parametrize("ending", [".tar.gz", ".tar.xz", ".zip"])
def test_corrupt_archives(tmp_path, ending):
    path = tmp_path / f"set-a{ending}"
    pack(path, {name: 100 * content for name, content in FILES.items()})
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 4 : len(damaged) // 3] = bytes(len(damaged) // 3 - len(damaged) // 4)
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="is truncated or corrupt"):
        list(patient_files(path))


def test_archives_without_patients(tmp_path):
    for ending in ENDINGS:
        path = tmp_path / f"set-a{ending}"
        pack(path, {})
        with pytest.raises(DataError, match="has no patients: expected files named by a number"):
            list(patient_files(path))
    for call in lambda path: list(patient_files(path)), parse_outcomes:
        with pytest.raises(DataError, match=r"none.zip cannot be read"):
            call(tmp_path / "none.zip")


def test_hours_and_means():
    rows = [
        # Half past is rounded to the even hour.
        "00:00,HR,60",
        "00:30,HR,70",
        "00:31,HR,90",
        "01:29,HR,93",
        "01:30,HR,100",
        "02:30,HR,110",
        "02:31,HR,0",
        "47:30,pH,7.25",
        "48:00,pH,7.5",
    ]
    records = parse((1, rows))
    rate, acidity = PARAMETERS.index("HR"), PARAMETERS.index("pH")
    assert records.values[0, :4, rate].tolist() == [65, 91.5, 105, 0]
    assert np.flatnonzero(records.mask[0, :, rate]).tolist() == [0, 1, 2, 3]
    assert records.values[0, 48, acidity] == np.float32(7.375)
    assert records.mask.sum() == 5
    assert np.all(records.values[~records.mask] == 0)
    assert records.num_rows.tolist() == [4 + len(rows)]


def test_codes_for_missing_values():
    rows = ["00:00,Weight,-1", "03:00,Weight,-1", "03:10,Weight,70", "04:00,Temp,-1"]
    static = ["Age,70", "Gender,-1", "Height,-1", "ICUType,3"]
    records = parse_patients([("1.txt", as_patient(1, rows, static=static))])
    weight, temperature = PARAMETERS.index("Weight"), PARAMETERS.index("Temp")
    assert np.flatnonzero(records.mask[0, :, weight]).tolist() == [3]
    assert records.values[0, 3, weight] == 70
    # Elsewhere it is a value like any other.
    assert records.values[0, 4, temperature] == -1
    assert records.mask.sum() == 2
    np.testing.assert_array_equal(records.static, [[70, np.nan, np.nan, 3]])
    assert records.num_rows.tolist() == [8]


def test_names():
    assert len(set(PARAMETERS) | set(STATIC)) == 41
    assert len(PARAMETERS) == 37


def test_carriage_returns():
    content = FILES["132539.txt"]
    windows = parse_patients([("132539.txt", content.replace(b"\n", b"\r\n"))])
    assert_same(windows, parse_patients([("132539.txt", content)]))
    assert_same(windows, parse_patients([("132539.txt", content.rstrip())]))


times = st.integers(0, 48 * 60).map(lambda m: f"{m // 60:02}:{m % 60:02}")
few_times = st.sampled_from(["00:00", "00:30", "01:10", "01:20", "48:00"])
numbers = st.floats(-1e6, 1e6).map(str) | st.sampled_from(["-1", "0", "0.1", "1e5"])
rows = st.builds(
    lambda *fields: ",".join(fields), times | few_times, st.sampled_from(PARAMETERS), numbers
)


@hypothesis.given(
    patients=st.lists(st.lists(rows, max_size=30), min_size=1, max_size=4), data=st.data()
)
def test_order_does_not_matter(patients, data):
    """Neither that of lines, which includes those of the same time, nor that of files."""
    numbered = list(enumerate(patients, 1))
    shuffled = [(number, data.draw(st.permutations(lines))) for number, lines in numbered]
    assert_same(parse(*numbered), parse(*data.draw(st.permutations(shuffled))))


@hypothesis.given(
    lines=st.lists(
        rows | st.sampled_from(["", "00:00", "00:00,HR", "00:00,HR,1,2", "00:00,HR,1,00:00,HR,2"]),
        max_size=6,
    )
)
def test_a_line_with_other_than_three_fields_is_found(lines):
    """All lines are parsed at once, where errors could make up for each other."""
    while lines and not lines[-1]:
        lines.pop()
    if all(line.count(",") == 2 for line in lines):
        parse((1, lines))
    else:
        with pytest.raises(DataError, match=r"1.txt is malformed: expected 3 fields, got"):
            parse((1, lines))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("48:01,HR,60", r"expected a time from 00:00 to 48:00, got '48:01' in line 7, '48:01,HR,"),
        ("1:00,HR,60", "expected a time"),
        ("01:60,HR,60", "expected a time"),
        ("01:00,Hr,60", "expected the name of a parameter, got 'Hr' in line 7"),
        ("01:00,,60", "expected the name of a parameter, got ''"),
        ("01:00,HR,", "expected a number, got ''"),
        ("01:00,HR,nan", "expected a number, got 'nan'"),
        ("01:00,HR,inf", "expected a number, got 'inf'"),
        ("01:00,HR", "expected 3 fields, got 2 in line 7"),
        ("01:00,HR,\xff", "expected a number"),
        ("00:00,RecordID,1", "expected its own RecordID, got 2 of them"),
    ],
)
def test_malformed_lines(row, message):
    content = as_patient(1, []) + row.encode("latin-1") + b"\n01:00,HR,60\n"
    with pytest.raises(DataError, match=f"1.txt is malformed: {message}"):
        parse_patients([("1.txt", content)])


def test_malformed_files():
    for content in b"", b"<html>", b"Time,Value,Parameter\n":
        with pytest.raises(DataError, match="expected the header Time,Parameter,Value, got"):
            parse_patients([("1.txt", content)])
    with pytest.raises(DataError, match="expected its own RecordID, got 0 of them"):
        parse_patients([("1.txt", b"Time,Parameter,Value\n")])
    with pytest.raises(DataError, match="expected its own RecordID, got 2"):
        parse_patients([("1.txt", as_patient(2, []))])
    twice = [("x/1.txt", as_patient(1, [])), ("y/1.txt", as_patient(1, []))]
    with pytest.raises(DataError, match=r"y/1.txt: patient 1 occurs twice"):
        parse_patients(twice)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected RecordID and In-hospital_death in its first line, got "),
        ("RecordID,Survival\n1,2\n", "expected RecordID and In-hospital_death"),
        ("RecordID,In-hospital_death\n1,0\n2\n", "line 3 is '2'"),
        ("RecordID,In-hospital_death\n1,2\n", "line 2 is '1,2'"),
        ("RecordID,In-hospital_death\nx,1\n", "line 2 is 'x,1'"),
    ],
)
def test_malformed_outcomes(tmp_path, text, message):
    (tmp_path / "Outcomes-a.txt").write_text(text)
    with pytest.raises(DataError, match=f"Outcomes-a.txt is malformed: {message}"):
        parse_outcomes(tmp_path / "Outcomes-a.txt")


@pytest.mark.parametrize(
    ("name", "num_rows", "num_deaths", "empty"),
    [
        ("a", 1_753_980, 554, [140501, 140936, 141264]),
        pytest.param(
            *("b", 1_758_535, 568, [142731, 142998, 145611, 147514, 150309, 150649]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_real_files(name, num_rows, num_deaths, empty):
    owner = registry.data_set("physionet2012")
    path = store.find(owner, registry.archives(f"set-{name}"))
    outcomes = store.find(owner, (f"Outcomes-{name}.txt",))
    if path is None or outcomes is None:
        pytest.skip(f"set {name} of PhysioNet 2012 is neither in TAYNODE_DATA nor in the cache")
    records = parse_patients(patient_files(path))
    assert len(records.ids) == 4000
    assert records.num_rows.sum() == num_rows
    assert records.ids[~np.any(records.mask, axis=(1, 2))].tolist() == empty
    deaths = parse_outcomes(outcomes)
    assert set(deaths) == set(records.ids.tolist())
    assert sum(deaths.values()) == num_deaths
