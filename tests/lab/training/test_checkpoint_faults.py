"""Damaged files, full disks and missing permissions never cost more than the newest checkpoint."""

import contextlib
import errno
import fcntl
import io
import os
import resource
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from taynode.lab.training import state_file
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


def file_of(directory, step):
    return directory / f"step_{step:09d}.ckpt"


def names(directory):
    return {path.name for path in directory.iterdir()} - {".lock"}


def flip(content, position, bit):
    return content[:position] + bytes([content[position] ^ bit]) + content[position + 1 :]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    save_all(directory, [1, 2])
    return directory


@settings(max_examples=150)
@given(data=st.data())
def test_flipped_bit(pair, data):
    file = file_of(pair, 2)
    content = file.read_bytes()
    position = data.draw(st.integers(0, len(content) - 1))
    try:
        file.write_bytes(flip(content, position, 1 << data.draw(st.integers(0, 7))))
        with pytest.warns(CheckpointWarning, match=r"step_000000002.*have changed"):
            assert_restored(checkpoints_of(pair), 1)
    finally:
        file.write_bytes(content)
    assert_restored(checkpoints_of(pair), 2)


@pytest.mark.slow
def test_every_bit(pair):
    file = file_of(pair, 2)
    content = file.read_bytes()
    try:
        for position in range(len(content)):
            for bit in range(8):
                file.write_bytes(flip(content, position, 1 << bit))
                assert checkpoints_of(pair).steps() == [1]
    finally:
        file.write_bytes(content)


@pytest.mark.slow
def test_every_length(pair):
    file = file_of(pair, 2)
    content = file.read_bytes()
    try:
        for length in range(len(content)):
            file.write_bytes(content[:length])
            assert checkpoints_of(pair).steps() == [1]
    finally:
        file.write_bytes(content)


DAMAGES = {
    "emptied": lambda file: file.write_bytes(b""),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "a directory": lambda file: (file.unlink(), file.mkdir()),
    "a dangling link": lambda file: (file.unlink(), file.symlink_to("nowhere")),
    "not text": lambda file: file.write_bytes(b"\xff" * 100),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file(tmp_path, damage):
    save_all(tmp_path, [1, 2])
    DAMAGES[damage](file_of(tmp_path, 2))
    with pytest.warns(CheckpointWarning, match="step_000000002"):
        assert_restored(checkpoints_of(tmp_path), 1)


def test_no_good_checkpoint_at_all(tmp_path):
    save_all(tmp_path, [1, 2, 3])
    for step, damage in enumerate(["truncated", "not text", "a directory"], 1):
        DAMAGES[damage](file_of(tmp_path, step))
    with pytest.raises(CheckpointError) as caught:
        checkpoints_of(tmp_path).restore(TEMPLATE)
    words = str(caught.value)
    assert all(file_of(tmp_path, step).name in words for step in (1, 2, 3))
    assert "Is a directory" in words
    assert "to start from the beginning" in words


def test_damaged_ones_do_not_count(tmp_path):
    checkpoints = save_all(tmp_path, [1, 2, 3], keep=2)
    assert checkpoints.steps() == [2, 3]
    DAMAGES["truncated"](file_of(tmp_path, 3))
    assert checkpoints.steps() == [2]
    # A damaged one stays until there are enough newer ones: somebody may be able to mend it.
    save_all(tmp_path, [4], keep=2)
    assert checkpoints.steps() == [2, 4]
    save_all(tmp_path, [5], keep=2)
    assert names(tmp_path) == {file_of(tmp_path, step).name for step in (4, 5)}


def test_damaged_one_is_replaced_when_its_step_comes_again(tmp_path):
    checkpoints = save_all(tmp_path, [1, 2])
    DAMAGES["truncated"](file_of(tmp_path, 2))
    with pytest.warns(CheckpointWarning):
        assert_restored(checkpoints, 1)
    save_all(tmp_path, [2])
    assert_restored(checkpoints, 2)
    assert checkpoints.steps() == [1, 2]


def test_unknown_format(tmp_path, monkeypatch):
    save_all(tmp_path, [1])
    monkeypatch.setattr(state_file, "FORMAT", 3)
    with pytest.raises(CheckpointError, match="format 2, but only format 3 is supported"):
        checkpoints_of(tmp_path).restore(TEMPLATE)


def test_checkpoints_of_format_1_are_not_overlooked(tmp_path):
    (tmp_path / "step_000000001").mkdir()
    with pytest.raises(CheckpointError, match=r"step_000000001`: Is a directory"):
        checkpoints_of(tmp_path).restore(TEMPLATE)


def test_foreign_files_are_left_alone(tmp_path):
    foreign = {".hidden", "notes.txt", "step_1.txt", "step_x.ckpt", "step_000000009.ckpt.part"}
    for name in foreign:
        (tmp_path / name).write_text("mine")
    checkpoints = save_all(tmp_path, [1, 2], keep=1)
    assert_restored(checkpoints, 2)
    assert names(tmp_path) == foreign | {file_of(tmp_path, 2).name}


def leave_a_draft(directory):
    """As a process does that is killed while it writes."""
    draft = directory / ".step_000000002.123.tmp.ckpt"
    draft.write_bytes(b"half")
    return draft


def test_leftovers_are_removed_by_the_next_save(tmp_path):
    checkpoints = save_all(tmp_path, [1])
    leave_a_draft(tmp_path)
    assert_restored(checkpoints, 1)
    save_all(tmp_path, [2])
    assert names(tmp_path) == {file_of(tmp_path, step).name for step in (1, 2)}


def test_two_processes_do_not_disturb_each_other(tmp_path):
    checkpoints = save_all(tmp_path, [1])
    draft = leave_a_draft(tmp_path)
    with open(tmp_path / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert_restored(checkpoints, 1)
        with pytest.raises(CheckpointError, match="Another process"):
            checkpoints.save(2, STATE)
    assert draft.exists()
    save_all(tmp_path, [2])


def fail_with(number):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return fail


def assert_intact(directory, steps):
    """As if nothing had been tried, and good for another try."""
    assert names(directory) == {file_of(directory, step).name for step in steps}
    assert_restored(checkpoints_of(directory), steps[-1])
    save_all(directory, [steps[-1] + 1])


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        ("fsync", errno.ENOSPC, "No space left on device"),
        ("replace", errno.ENOSPC, "No space left on device"),
        ("fsync", errno.EDQUOT, "quota exceeded"),
        ("fsync", errno.EIO, "Input/output error"),
        ("replace", errno.EACCES, "Permission denied"),
    ],
)
def test_error_at_the_end(tmp_path, monkeypatch, call, number, words):
    save_all(tmp_path, [1, 2])
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail_with(number))
        with pytest.raises(CheckpointError, match=rf"step 3 .*{words}.*untouched"):
            save_all(tmp_path, [3])
    assert_intact(tmp_path, [1, 2])


@contextlib.contextmanager
def files_of_at_most(size):
    """The system refuses to let files grow beyond that, in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 1, 300, 900])
def test_write_that_fails_halfway(tmp_path, size):
    save_all(tmp_path, [1, 2])
    with files_of_at_most(size), pytest.raises(CheckpointError, match=r"File too large.*untouched"):
        save_all(tmp_path, [3])
    assert_intact(tmp_path, [1, 2])


def test_file_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", fail_with(errno.ENOLCK))
    assert_restored(save_all(tmp_path, [1, 2]), 2)


class Flipping(io.FileIO):
    """A disk that writes other bits than it is given."""

    def write(self, data):
        return super().write(flip(bytes(data), len(data) // 2, 1))


def test_file_that_is_read_back_differently(tmp_path, monkeypatch):
    save_all(tmp_path, [1])
    with monkeypatch.context() as patch:
        real = io.open
        faulty = lambda file, mode="r", *args, **kwargs: (
            Flipping(file, mode) if mode == "wb" else real(file, mode, *args, **kwargs)
        )
        patch.setattr(io, "open", faulty)
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


def test_old_one_that_cannot_be_deleted(tmp_path):
    save_all(tmp_path, [1, 2], keep=2)
    DAMAGES["a directory"](file_of(tmp_path, 1))
    with pytest.warns(CheckpointWarning, match="could not be deleted"):
        save_all(tmp_path, [3], keep=1)
    assert_restored(checkpoints_of(tmp_path), 3)


def test_file_in_place_of_the_directory(tmp_path):
    (tmp_path / "file").write_text("")
    for directory, words in (("file", "File exists"), ("file/below", "Not a directory")):
        checkpoints = checkpoints_of(tmp_path / directory)
        with pytest.raises(CheckpointError, match=words):
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


def test_disk_that_is_really_full(small_disk, capfd):
    save_all(small_disk, [1, 2])
    large = {"w": np.ones(200_000), "n": 0}
    with pytest.raises(CheckpointError, match=r"step 3 .*No space left on device"):
        checkpoints_of(small_disk).save(3, large)
    assert capfd.readouterr() == ("", "")
    assert_intact(small_disk, [1, 2])


def test_disk_that_is_really_read_only(small_disk):
    checkpoints = save_all(small_disk, [1, 2])
    leave_a_draft(small_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(CheckpointError, match="Read-only"):
        checkpoints.save(3, STATE)
    assert_restored(checkpoints, 2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any directory")
def test_read_only_directory(tmp_path):
    checkpoints = save_all(tmp_path, [1, 2])
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CheckpointError, match="Permission denied"):
            checkpoints.save(3, STATE)
        assert_restored(checkpoints, 2)
    finally:
        tmp_path.chmod(0o700)
