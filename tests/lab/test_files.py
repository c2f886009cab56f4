"""Files that several processes use: locks, and drafts."""

import errno
import fcntl

import pytest

from taynode.lab.cli.errors import explain, NO_SPACE
from taynode.lab.files import drafted, exclusive
from taynode.lab.sweep.executor import LocalExecutor
from taynode.lab.sweep.results import run_jobs
from taynode.lab.sweep.table import Table
from tests.lab.sweep.test_table import job, result


def without_locks(monkeypatch, number):
    """As if `flock` failed with this error."""

    def fail(*args):
        raise OSError(number, "as in a test")

    monkeypatch.setattr(fcntl, "flock", fail)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_rows_are_not_lost_without_a_word_where_there_are_no_locks(monkeypatch, tmp_path, number):
    """BUG, fixed: two processes appended at the same time, and 285 of 300 rows were kept."""
    without_locks(monkeypatch, number)
    with pytest.raises(OSError, match="has no locks") as caught:
        Table(tmp_path).append(result(job()))
    code, message = explain(caught.value)
    assert code == NO_SPACE
    assert message.startswith(f"cannot use {tmp_path / '.lock'}: its file system has no locks")
    assert "choose a directory on a file system that has them" in message
    # Before anything is trained, not when it is kept.
    with pytest.raises(OSError, match="has no locks"):
        list(run_jobs([job()], tmp_path, LocalExecutor(1)))
    assert [file.name for file in tmp_path.iterdir()] == [".lock"]


def test_a_lock_that_is_not_needed_and_other_errors(monkeypatch, tmp_path):
    without_locks(monkeypatch, errno.ENOLCK)
    with exclusive(tmp_path / "lock", needed=False):
        pass
    without_locks(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match="as in a test") as caught, exclusive(tmp_path / "lock"):
        pass
    assert caught.value.filename == str(tmp_path / "lock")


def test_drafts_of_one_process_are_different_files(tmp_path):
    """BUG, fixed: they had the number of the process only, which is not unique on two hosts."""
    file = tmp_path / "file.json"
    with drafted(file) as first:
        first.write_text("first")
        with drafted(file) as second:
            second.write_text("second")
        assert file.read_text() == "second"
    assert file.read_text() == "first"
