"""Downloads from a real server: broken connections, wrong files, mirrors that fail."""

import dataclasses
import os
import socket
import subprocess
import sys
import threading

import pooch
import pytest

from taynode.lab.data import DataError, download, fetch, registry, store
from taynode.lab.files import exclusive
from tests.lab.data.conftest import register


@pytest.fixture
def file(toy):
    return toy.files[0]


@pytest.fixture
def target(cache):
    return cache / "toy-folder" / "toy.bin"


@pytest.fixture
def part(target):
    target.parent.mkdir(parents=True)
    return target.with_name("toy.bin.part")


def visible(folder):
    """What is in a folder, apart from locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_a_file_is_downloaded_once(site, file, target):
    assert store.locate("toy", "toy.bin") == target
    assert store.locate("toy", "toy.bin") == target
    assert target.read_bytes() == site.files["toy.bin"]
    assert visible(target.parent) == ["toy.bin"]
    assert len(site.requests) == 1


def test_a_broken_connection_is_resumed(site, file, target):
    site.drops = [100_000]
    store.locate("toy", "toy.bin")
    assert target.read_bytes() == site.files["toy.bin"]
    assert [wanted for _, wanted in site.requests] == [None, "bytes=100000-"]
    assert visible(target.parent) == ["toy.bin"]


def test_a_download_that_was_given_up_is_resumed_the_next_time(site, file, target, monkeypatch):
    monkeypatch.setattr(download, "ROUNDS", 1)
    site.drops = [70_000, 80_000]
    with pytest.raises(DataError, match="connection broke: expected 300000 bytes, got 70000"):
        fetch("toy")
    with pytest.raises(DataError, match=r"got 150000.*`taynode data fetch toy`.*TAYNODE_DATA"):
        fetch("toy")
    assert visible(target.parent) == ["toy.bin.part"]
    assert fetch("toy") == [target]
    assert target.read_bytes() == site.files["toy.bin"]
    assert visible(target.parent) == ["toy.bin"]


def test_a_truncated_answer_of_unknown_length_is_resumed(site, file, target):
    site.tells_length = False
    site.drops = [100_000]
    store.locate("toy", "toy.bin")
    assert target.read_bytes() == site.files["toy.bin"]
    assert site.requests[1][1] == "bytes=100000-"


def test_a_server_without_ranges_starts_over(site, file, target):
    site.knows_ranges = False
    site.drops = [100_000]
    store.locate("toy", "toy.bin")
    assert target.read_bytes() == site.files["toy.bin"]


@pytest.mark.parametrize("rest", [b"not the beginning", b"?" * 300_000, b"?" * 300_001])
def test_a_partial_file_that_does_not_fit_is_thrown_away(site, file, target, part, rest):
    part.write_bytes(rest)
    store.locate("toy", "toy.bin")
    assert target.read_bytes() == site.files["toy.bin"]
    assert visible(target.parent) == ["toy.bin"]


@pytest.mark.parametrize("offer", ["bytes 5-299999/300000", "bytes 7-99/100", "nonsense"])
def test_a_wrong_range_is_not_appended(site, file, target, part, offer):
    part.write_bytes(site.files["toy.bin"][:7])
    site.wrong_range = offer
    store.locate("toy", "toy.bin")
    assert target.read_bytes() == site.files["toy.bin"]


def test_a_range_that_cannot_be_had(site, file, target, part):
    part.write_bytes(site.files["toy.bin"][:7])
    site.statuses = [416]
    store.locate("toy", "toy.bin")
    assert target.read_bytes() == site.files["toy.bin"]


def test_a_corrupt_file_is_refused(site, file, target):
    site.files["toy.bin"] = bytes(300_000)
    with pytest.raises(DataError, match=f"corrupt: expected SHA-256 {file.sha256}, got"):
        store.locate("toy", "toy.bin")
    assert visible(target.parent) == []
    # Asking again would give the same.
    assert len(site.requests) == 1


@pytest.mark.parametrize(("size", "tells"), [(5, True), (300_001, True), (300_001, False)])
def test_a_file_of_another_size_is_refused(site, file, target, size, tells):
    site.files["toy.bin"] = bytes(size)
    site.tells_length = tells
    with pytest.raises(DataError, match=r"corrupt: expected 300000 bytes, (was offered|got more)"):
        store.locate("toy", "toy.bin")
    assert visible(target.parent) == []


def test_an_error_page_does_not_harm_a_partial_file(site, file, target, part):
    part.write_bytes(site.files["toy.bin"][:7])
    site.knows_ranges = False
    site.files["toy.bin"] = b"Please log in."
    with pytest.raises(DataError, match="expected 300000 bytes, was offered 14"):
        store.locate("toy", "toy.bin")
    assert part.stat().st_size == 7


def test_the_next_mirror_is_tried(site, file, target, monkeypatch):
    site.files["bad.bin"] = bytes(300_000)
    urls = site.url("nowhere.bin"), site.url("bad.bin"), site.url("toy.bin")
    register(monkeypatch, "toy", dataclasses.replace(file, urls=urls))
    store.locate("toy", "toy.bin")
    assert [path for path, _ in site.requests] == ["nowhere.bin", "bad.bin", "toy.bin"]
    assert target.read_bytes() == site.files["toy.bin"]


def test_a_mirror_continues_what_another_began(site, file, target, monkeypatch):
    site.files["copy.bin"] = site.files["toy.bin"]
    site.drops = [1000]
    urls = site.url("toy.bin"), site.url("copy.bin")
    register(monkeypatch, "toy", dataclasses.replace(file, urls=urls))
    store.locate("toy", "toy.bin")
    assert site.requests == [("toy.bin", None), ("copy.bin", "bytes=1000-")]
    assert target.read_bytes() == site.files["toy.bin"]


@pytest.mark.parametrize("status", [429, 503])
def test_what_may_pass_is_tried_again(site, file, target, status):
    site.statuses = [status]
    store.locate("toy", "toy.bin")
    assert len(site.requests) == 2
    assert target.read_bytes() == site.files["toy.bin"]


def test_what_will_not_pass_is_not_tried_again(site, file):
    site.statuses = [403]
    with pytest.raises(DataError, match="HTTP status 403"):
        store.locate("toy", "toy.bin")
    assert len(site.requests) == 1


def test_trying_again_has_an_end(site, file, target):
    site.statuses = [503] * 100
    with pytest.raises(DataError, match="HTTP status 503"):
        store.locate("toy", "toy.bin")
    assert len(site.requests) == download.ROUNDS


def test_no_mirror_has_it(site, file, target):
    site.files.clear()
    with pytest.raises(DataError, match=r"toy.bin could not be downloaded.*HTTP status 404"):
        store.locate("toy", "toy.bin")


def test_no_network(file, target, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/toy.bin"
        register(monkeypatch, "toy", dataclasses.replace(file, urls=(url,)))
        with pytest.raises(DataError, match=r"toy.bin is missing.*no network.*TAYNODE_DATA"):
            store.locate("toy", "toy.bin")


def test_a_certificate_that_is_not_accepted(file, target, monkeypatch):
    import requests

    def get(*args, **kwargs):
        raise requests.exceptions.SSLError("self-signed")

    monkeypatch.setattr(requests, "get", get)
    with pytest.raises(DataError, match="not secure: self-signed"):
        store.locate("toy", "toy.bin")


def test_a_cache_that_cannot_be_written(file, cache):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where a folder should be")
    with pytest.raises(DataError, match=r"toy.bin: cannot write to .*taynode"):
        store.locate("toy", "toy.bin")


def test_progress_is_reported(site, file, cache):
    site.drops = [100_000]
    calls = []
    fetch("toy", progress=lambda *call: calls.append(call))
    names, done, totals = zip(*calls, strict=True)
    assert set(names) == {"toy.bin"}
    assert set(totals) == {300_000}
    assert list(done) == sorted(done)
    assert done[-1] == 300_000


def test_a_bar_is_shown_on_a_terminal(file, cache, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    fetch("toy")
    assert "toy.bin" in capsys.readouterr().err


def test_nothing_is_printed_elsewhere(file, cache, capsys):
    level = pooch.get_logger().level
    fetch("toy")
    assert capsys.readouterr() == ("", "")
    assert pooch.get_logger().level == level


def test_two_downloads_at_once_are_one(site, file, target):
    threads = [threading.Thread(target=store.locate, args=("toy", "toy.bin")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert target.read_bytes() == site.files["toy.bin"]
    assert len(site.requests) == 1


@pytest.mark.skipif(os.name == "nt", reason="there is no such lock on Windows")
def test_the_lock_keeps_other_processes_out(tmp_path):
    code = (
        "import fcntl, sys\n"
        "with open(sys.argv[1], 'a') as file:\n"
        "    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lock")]
    with exclusive(tmp_path / "lock"):
        assert b"BlockingIOError" in subprocess.run(command, capture_output=True, timeout=20).stderr
    assert subprocess.run(command, capture_output=True, timeout=20).returncode == 0


def test_the_registry_is_sound():
    for name, data_set in registry.DATA_SETS.items():
        assert data_set.name == name
        assert sum(map(bool, [data_set.files, data_set.package, data_set.by_hand])) == 1
        for file in data_set.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert file.size > 0
            assert file.urls
            assert all(url.startswith("https://") for url in file.urls)
            assert len({url.split("/")[2] for url in file.urls}) == len(file.urls)
