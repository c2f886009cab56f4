"""Which Chromium the tests of the page take, and what happens if there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Error

from .browser import candidates, launch, NoBrowser


ROOT = Path(__file__).parents[3]


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with an empty path on which nothing was ever downloaded."""
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    return tmp_path


def make_program(path):
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return {"executable_path": str(path)}


def test_browsers_on_the_path_come_before_the_download(bare):
    other, first = (make_program(bare / name) for name in ("google-chrome", "chromium"))
    assert candidates() == [first, other, {"channel": "chrome"}, {}]


def test_the_variable_names_the_only_candidate(bare, monkeypatch):
    make_program(bare / "chromium")
    monkeypatch.setenv("CHROMIUM", "/opt/mine")
    assert candidates() == [{"executable_path": "/opt/mine"}]


class Starts:
    """Stands in for playwright, with browsers that start if their paths are given."""

    def __init__(self, *paths):
        self.paths, self.chromium = paths, self

    def launch(self, executable_path=None, **_):
        if executable_path not in self.paths:
            raise Error("it does not start")
        return executable_path


def test_a_stub_on_the_path_is_passed_over(bare):
    """As that of Ubuntu, which only advises to install a snap."""
    _, works = (make_program(bare / name) for name in ("chromium", "chrome"))
    assert launch(Starts(works["executable_path"])) == works["executable_path"]
    assert launch(Starts(None)) is None
    with pytest.raises(NoBrowser, match="apt-get install chromium"):
        launch(Starts())


def run_tests_of_a_page(bare, *options, ci):
    """Four tests that need a browser, in a process of their own."""
    (bare / "pytest.ini").write_text("[pytest]\n")
    (bare / "conftest.py").write_text(
        "from tests.lab.report.chromium import chromium\n"
        "from tests.skips import pytest_terminal_summary\n"
    )
    tests = "".join(f"def test_{i}(chromium): pass\n" for i in range(4))
    (bare / "test_page.py").write_text(tests)
    # None of this run's workers, and no plugins that take time to import.
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    plain = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin", "CI": ci}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        env=ours | plain | {"PYTHONPATH": str(ROOT)},
        cwd=bare,
        capture_output=True,
        text=True,
    )


def test_bug_a_fresh_machine_had_an_error_for_each_test_of_the_page(bare):
    """Without a browser the suite passes, and one line says what was skipped."""
    done = run_tests_of_a_page(bare, "-n", "2", ci="")
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (line for line in done.stdout.splitlines() if "Chromium" in line)
    assert line.startswith("4 skipped. Tests of the page: no Chromium")


def test_a_missing_browser_is_an_error_where_everything_must_be_tested(bare):
    done = run_tests_of_a_page(bare, ci="1")
    assert done.returncode == 1
    assert "4 errors" in done.stdout
    assert "no Chromium starts on this machine" in done.stdout
