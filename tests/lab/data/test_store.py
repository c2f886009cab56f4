"""Where files are looked for, and what is said about files that are missing or damaged."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taynode.lab.data import DataError, digits, fetch, list_data, registry, store, verify
from taynode.lab.data.check import check


@pytest.fixture(params=["flat", "subfolder"])
def local(request, toy, tmp_path, monkeypatch):
    """Where the file of the toy data set belongs in a folder that `TAYNODE_DATA` names."""
    root = tmp_path / "own"
    folder = root if request.param == "flat" else root / toy.folder
    folder.mkdir(parents=True)
    monkeypatch.setenv("TAYNODE_DATA", str(root))
    return folder / "toy.bin"


def test_the_local_folder_comes_first(site, local, cache):
    fetch("toy")
    cached = cache / "toy-folder" / "toy.bin"
    assert fetch("toy") == [cached]
    shutil.copy(cached, local)
    assert fetch("toy") == [local]
    assert len(site.requests) == 1


def test_the_local_folder_may_be_relative(site, toy, tmp_path, monkeypatch):
    (tmp_path / "toy.bin").write_bytes(site.files["toy.bin"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAYNODE_DATA", ".")
    assert fetch("toy") == [Path("toy.bin")]


def test_an_empty_variable_is_none(toy, cache, monkeypatch):
    monkeypatch.setenv("TAYNODE_DATA", "")
    assert store.local_folder() is None


def test_a_local_folder_that_is_none(toy, monkeypatch):
    monkeypatch.setenv("TAYNODE_DATA", "/no/such/folder")
    for call in list_data, lambda: verify("toy"), lambda: fetch("toy"):
        with pytest.raises(DataError, match="TAYNODE_DATA is '/no/such/folder', which is no"):
            call()


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (10, "is truncated: expected 300000 bytes, got 10. Delete it, then run `taynode data"),
        (300_000, "is corrupt: expected SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}. Delete it"),
        (300_001, "is corrupt: expected SHA-256"),
    ],
)
def test_a_damaged_local_copy_is_neither_used_nor_replaced(site, local, cache, size, message):
    cache_copy = cache / "toy-folder" / "toy.bin"
    cache_copy.parent.mkdir(parents=True)
    cache_copy.write_bytes(site.files["toy.bin"])
    local.write_bytes(bytes(size))
    with pytest.raises(DataError, match=f"toy.bin {message}"):
        fetch("toy")
    assert local.read_bytes() == bytes(size)
    assert not site.requests


@pytest.mark.parametrize("size", [10, 300_000])
def test_a_damaged_copy_in_the_cache_is_replaced(site, toy, cache, size):
    copy = cache / "toy-folder" / "toy.bin"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(bytes(size))
    assert fetch("toy") == [copy]
    assert copy.read_bytes() == site.files["toy.bin"]


def test_a_damaged_copy_in_the_cache_stays_if_there_is_no_other(site, toy, cache):
    copy = cache / "toy-folder" / "toy.bin"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"damaged")
    site.files.clear()
    with pytest.raises(DataError, match=r"is truncated.*could not be downloaded"):
        fetch("toy")
    with pytest.raises(DataError, match=r"is truncated.*Delete it"):
        store.locate("toy", "toy.bin", allow_download=False)
    assert copy.read_bytes() == b"damaged"


def test_missing_without_the_network(site, toy, cache):
    message = (
        r"toy.bin is missing: expected 300000 bytes, got no file in TAYNODE_DATA \(not set\) and "
        r"the cache \(.*\). Run `taynode data fetch toy`, or set TAYNODE_DATA to a folder that "
        r"has it, flat or in a subfolder toy-folder."
    )
    with pytest.raises(DataError, match=message):
        store.locate("toy", "toy.bin", allow_download=False)
    assert not site.requests


def test_a_file_that_cannot_be_read(local, monkeypatch):
    local.write_bytes(bytes(300_000))

    def refuse(*args):
        raise PermissionError("not for you")

    # Root may read everything, so the right to read cannot simply be taken away.
    monkeypatch.setattr("taynode.lab.data.check.sha256", refuse)
    with pytest.raises(DataError, match=r"is unreadable: not for you. Make it readable"):
        fetch("toy")
    assert verify("toy")[0].state == "unreadable"


def test_unknown_names(toy):
    for call in fetch, verify:
        with pytest.raises(DataError, match=r"no data set 'tyo'. There are: digits, .*, toy"):
            call("tyo")
    with pytest.raises(DataError, match=r"toy has no file other.bin"):
        store.locate("toy", "other.bin")


def test_verify_tells_the_states_apart(site, toy, local):
    (file,) = toy.files
    assert [status.state for status in verify("toy")] == ["missing"]
    local.write_bytes(b"")
    (status,) = verify("toy")
    assert (status.state, status.path) == ("truncated", local)
    assert status.detail == "expected 300000 bytes, got 0"
    local.write_bytes(bytes(300_000))
    (status,) = verify("toy")
    assert status.state == "corrupt"
    assert file.sha256 in status.detail
    local.write_bytes(site.files["toy.bin"])
    assert verify("toy") == [check(local, file)]
    assert verify("toy")[0].state == "ok"
    local.unlink()
    local.mkdir()
    assert verify("toy")[0].state == "missing"


def test_the_list(small_mnist, cache):
    def where(name):
        return {x.name: x for x in list_data()}[name].where

    assert where("mnist") == "not here"
    assert where("digits") == "in the package sklearn"
    store.locate("mnist", "t10k-labels-idx1-ubyte.gz")
    assert where("mnist") == f"{cache / 'mnist-folder'} (1 of 4 files)"
    fetch("mnist")
    assert where("mnist") == str(cache / "mnist-folder")
    (mnist,) = (x for x in list_data() if x.name == "mnist")
    assert mnist.size == sum(file.size for file in registry.DATA_SETS["mnist"].files)
    assert mnist.license
    assert mnist.source


def test_embedded_data_needs_no_files():
    assert fetch("digits") == []
    assert verify("digits") == []


def test_files_that_are_fetched_by_hand(cache, tmp_path, monkeypatch):
    message = (
        r"handy is missing: got no best or good in TAYNODE_DATA \(not set\) and the cache \(.*\). "
        r"It has to be fetched by hand: get it from here, then put it into .*handy-folder, or set "
        r"TAYNODE_DATA to a folder that has it, flat or in a subfolder handy-folder."
    )
    groups = (("best", "good"), ("other",))
    handy = registry.DataSet("handy", "", "CC0", "here", "handy-folder", by_hand=groups)
    monkeypatch.setitem(registry.DATA_SETS, "handy", handy)
    where = lambda: {x.name: x for x in list_data()}["handy"].where
    with pytest.raises(DataError, match=message):
        fetch("handy")
    assert where() == "not here"
    assert [x.state for x in verify("handy")] == ["missing", "missing"]
    assert verify("handy")[0].detail == "expected best or good, got no file"

    folder = cache / "handy-folder"
    folder.mkdir(parents=True)
    (folder / "good").write_bytes(b"good")
    with pytest.raises(DataError, match="handy is missing: got no other"):
        fetch("handy")
    assert where() == f"{folder} (1 of 2 files)"
    (folder / "other").mkdir()
    assert fetch("handy") == [folder / "good", folder / "other"]
    assert where() == str(folder)

    # The better file wins, wherever it is; of two that are as good, the one of the user.
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("TAYNODE_DATA", str(own))
    (own / "good").write_bytes(b"mine")
    assert fetch("handy")[0] == own / "good"
    (folder / "best").write_bytes(b"best")
    assert fetch("handy")[0] == folder / "best"
    states = verify("handy")
    assert [x.state for x in states] == ["unknown", "unknown"]
    assert states[0].detail.startswith("there is no published checksum to compare with; 4 bytes")


def test_packages_that_are_not_installed(site, toy, local, monkeypatch):
    find = importlib.util.find_spec
    hidden = ("pooch", "sklearn")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in hidden else find(name)
    )
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for call in digits.load_digits, lambda: fetch("digits"):
        with pytest.raises(DataError, match=r"pip install 'taynode\[data\]'"):
            call()
    assert "not here" in [x.where for x in list_data() if x.name == "digits"]
    with pytest.raises(DataError, match=r"missing.*pooch: run `pip install 'taynode\[data\]'`"):
        fetch("toy")
    # What is there already can be used without pooch.
    local.write_bytes(site.files["toy.bin"])
    assert fetch("toy") == [local]


def test_importing_is_cheap():
    code = (
        "import sys, taynode.lab.data, taynode.lab.data.manage\n"
        "taynode.lab.data.verify('digits')\n"
        "heavy = {'jax', 'pooch', 'requests', 'sklearn', 'scipy', 'rich'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
