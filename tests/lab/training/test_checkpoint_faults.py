"""Damaged files, full disks and missing permissions never cost more than the newest checkpoint."""

import errno
import fcntl
import os
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taynode.lab.training import atomic, manifest, storage
from taynode.lab.training.checkpoints import CheckpointError, Checkpoints, CheckpointWarning


STATE = {"w": np.arange(100.0), "n": 1}
TEMPLATE = {"w": np.zeros(100), "n": 0}


def checkpoints_of(directory, **kwargs):
    return Checkpoints(directory, fingerprint="a", **kwargs)


def save_all(directory, steps, **kwargs):
    checkpoints = checkpoints_of(directory, **kwargs)
    for step in steps:
        checkpoints.save(step, {"w": STATE["w"] + step, "n": step})
    return checkpoints


def assert_restored(checkpoints, step):
    restored = checkpoints.restore(TEMPLATE)
    assert (restored.step, restored.state["n"]) == (step, step)
    np.testing.assert_array_equal(restored.state["w"], STATE["w"] + step)


def path_of(directory, step):
    return directory / f"step_{step:09d}"


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def names(directory):
    return {path.name for path in directory.iterdir()} - {atomic.LOCK}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    save_all(directory, [1, 2])
    return directory


@settings(max_examples=150)
@given(data=st.data())
def test_flipped_bit(pair, data):
    file = data.draw(st.sampled_from(files_of(path_of(pair, 2))))
    content = file.read_bytes()
    position = data.draw(st.integers(0, len(content) - 1))
    flipped = content[position] ^ (1 << data.draw(st.integers(0, 7)))
    try:
        file.write_bytes(content[:position] + bytes([flipped]) + content[position + 1 :])
        with pytest.warns(CheckpointWarning, match=r"step_000000002.*changed"):
            assert_restored(checkpoints_of(pair), 1)
    finally:
        file.write_bytes(content)
    assert_restored(checkpoints_of(pair), 2)


@pytest.mark.slow
def test_every_byte_of_every_file(pair):
    path = path_of(pair, 2)
    for file in files_of(path):
        content = file.read_bytes()
        try:
            for position in range(len(content)):
                for bit in (1, 16, 128):
                    flipped = bytes([content[position] ^ bit])
                    file.write_bytes(content[:position] + flipped + content[position + 1 :])
                    with pytest.raises(manifest.Damaged):
                        manifest.check_files(path, manifest.read_manifest(path))
        finally:
            file.write_bytes(content)


DAMAGES = {
    "removed": lambda file: file.unlink(),
    "emptied": lambda file: file.write_bytes(b""),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "a directory": lambda file: (file.unlink(), file.mkdir()),
    "not text": lambda file: file.write_bytes(b"\xff" * 100),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(tmp_path, damage):
    save_all(tmp_path, [1, 2])
    for file in files_of(path_of(tmp_path, 2)):
        copy = tmp_path / "copy"
        shutil.copytree(path_of(tmp_path, 2), copy)
        DAMAGES[damage](file)
        with pytest.warns(CheckpointWarning, match=r"step_000000002.*" + file.name):
            assert_restored(checkpoints_of(tmp_path), 1)
        shutil.rmtree(path_of(tmp_path, 2))
        copy.rename(path_of(tmp_path, 2))


def test_no_good_checkpoint_at_all(tmp_path):
    save_all(tmp_path, [1, 2, 3])
    for step in (1, 2):
        DAMAGES["truncated"](path_of(tmp_path, step) / "state" / "data" / "0")
    DAMAGES["removed"](path_of(tmp_path, 3) / "manifest.json")
    with pytest.raises(CheckpointError) as caught:
        checkpoints_of(tmp_path).restore(TEMPLATE)
    words = str(caught.value)
    assert all(path_of(tmp_path, step).name in words for step in (1, 2, 3))
    assert "`manifest.json`" in words
    assert "800 bytes instead of 801" in words
    assert "to start anew" in words


def test_damaged_ones_do_not_count(tmp_path):
    checkpoints = save_all(tmp_path, [1, 2, 3], keep=2)
    assert checkpoints.steps() == [2, 3]
    DAMAGES["truncated"](path_of(tmp_path, 3) / "state" / "data" / "0")
    assert checkpoints.steps() == [2]
    # The run goes on from 2, and comes to 3 again.
    with pytest.warns(CheckpointWarning):
        assert_restored(checkpoints, 2)
    save_all(tmp_path, [3], keep=2)
    assert checkpoints.steps() == [2, 3]
    assert_restored(checkpoints, 3)
    save_all(tmp_path, [4], keep=2)
    assert names(tmp_path) == {"step_000000003.1", "step_000000004"}


def test_unknown_format(tmp_path, monkeypatch):
    save_all(tmp_path, [1])
    monkeypatch.setattr(manifest, "FORMAT", 2)
    with pytest.raises(CheckpointError, match="it has format 1, and only format 2 is known"):
        checkpoints_of(tmp_path).restore(TEMPLATE)


def test_orbax_that_cannot_read(tmp_path, monkeypatch):
    def fail(path):
        raise RuntimeError("unknown driver")

    save_all(tmp_path, [1])
    monkeypatch.setattr(storage._handler(), "restore", fail)
    with pytest.raises(CheckpointError, match="orbax cannot read it: unknown driver"):
        checkpoints_of(tmp_path).restore(TEMPLATE)


def test_leftovers_are_removed_at_the_next_start(tmp_path):
    save_all(tmp_path, [1])
    shutil.copytree(path_of(tmp_path, 1), tmp_path / ".unfinished_step_000000002")
    checkpoints = checkpoints_of(tmp_path)
    assert names(tmp_path) == {"step_000000001"}
    assert_restored(checkpoints, 1)


def test_two_processes_do_not_disturb_each_other(tmp_path):
    save_all(tmp_path, [1])
    (tmp_path / ".unfinished_step_000000002").mkdir()
    with open(tmp_path / atomic.LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        checkpoints = checkpoints_of(tmp_path)
        assert_restored(checkpoints, 1)
        with pytest.raises(CheckpointError, match="Another process"):
            checkpoints.save(2, STATE)
    assert (tmp_path / ".unfinished_step_000000002").exists()


def fail_with(number, after=None):
    def fail(*args, **kwargs):
        if after is not None:
            after(*args, **kwargs)
        raise OSError(number, os.strerror(number))

    return fail


def written_halfway(directory, *args, **kwargs):
    (directory / "half").write_bytes(b"x" * 1000)


def assert_intact(directory, steps):
    """As if nothing had been tried, and good for another try."""
    assert names(directory) == {path_of(directory, step).name for step in steps}
    checkpoints = checkpoints_of(directory)
    assert_restored(checkpoints, steps[-1])
    save_all(directory, [steps[-1] + 1])


PLACES = {
    "room": (lambda: storage, "_reserve", None),
    "data": (storage._handler, "save", written_halfway),
    "data at the end": (storage._handler, "finalize", None),
    "sync": (lambda: manifest, "_sync", None),
    "manifest": (lambda: os, "replace", None),
    "name": (lambda: os, "rename", None),
}


@pytest.mark.parametrize("place", PLACES)
def test_disk_full_halfway(tmp_path, monkeypatch, place):
    save_all(tmp_path, [1, 2])
    where, name, after = PLACES[place]
    with monkeypatch.context() as patch:
        patch.setattr(where(), name, fail_with(errno.ENOSPC, after))
        with pytest.raises(CheckpointError, match=r"step 3 .*no space left.*untouched"):
            save_all(tmp_path, [3])
    assert_intact(tmp_path, [1, 2])


def test_file_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", fail_with(errno.ENOLCK))
    assert_restored(save_all(tmp_path, [1, 2]), 2)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "no permission"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_other_errors(tmp_path, monkeypatch, number, words):
    save_all(tmp_path, [1])
    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", fail_with(number))
        with pytest.raises(CheckpointError, match=words):
            save_all(tmp_path, [2])
    assert_intact(tmp_path, [1])


def test_what_is_read_back_differs(tmp_path, monkeypatch):
    save_all(tmp_path, [1])
    with monkeypatch.context() as patch:
        write = storage._handler().save
        patch.setattr(storage._handler(), "save", lambda d, x: write(d, {"data": x["data"] ^ 1}))
        with pytest.raises(CheckpointError, match="read back"):
            save_all(tmp_path, [2])
    assert_intact(tmp_path, [1])


def test_interrupted_save(tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    save_all(tmp_path, [1])
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            save_all(tmp_path, [2])
    assert_intact(tmp_path, [1])


def test_old_one_that_cannot_be_deleted(tmp_path, monkeypatch):
    save_all(tmp_path, [1], keep=1)
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "discard", fail_with(errno.EACCES))
        with pytest.warns(CheckpointWarning, match="could not be deleted"):
            save_all(tmp_path, [2], keep=1)
    assert_restored(checkpoints_of(tmp_path), 2)


def test_file_in_place_of_the_directory(tmp_path):
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        checkpoints = checkpoints_of(directory)
        with pytest.raises(CheckpointError, match="there is a file where"):
            checkpoints.save(0, STATE)
        with pytest.raises(CheckpointError, match="Not a directory"):
            checkpoints.restore(TEMPLATE)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


@pytest.mark.parametrize("noticed", ["before", "while"])
def test_disk_that_is_really_full(small_disk, monkeypatch, capfd, noticed):
    save_all(small_disk, [1, 2])
    large = {"w": np.ones(200_000), "n": 0}
    with monkeypatch.context() as patch:
        if noticed == "while":
            patch.setattr(storage, "_reserve", lambda *args: None)
        with pytest.raises(CheckpointError, match=r"step 3 .*no space left on the disk"):
            checkpoints_of(small_disk).save(3, large)
    assert capfd.readouterr() == ("", "")
    assert_intact(small_disk, [1, 2])


def test_disk_that_is_really_read_only(small_disk):
    save_all(small_disk, [1, 2])
    (small_disk / ".unfinished_step_000000003").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    checkpoints = checkpoints_of(small_disk)
    with pytest.raises(CheckpointError, match="read-only"):
        checkpoints.save(3, STATE)
    assert_restored(checkpoints, 2)
