"""The command line as a user meets it: what it prints, and how it exits."""

import dataclasses
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import diffrax as dfx
import pytest

from taynode import __version__, lab
from taynode.lab.cli import app, display, main, options
from taynode.lab.config import OptimizerConfig, RegularizerConfig, SolveConfig, TrainConfig


TASK = "tiny_task:Tiny"


@pytest.fixture
def taynode(capsys):
    """Calls the program: its exit code, and what it printed."""

    def call(*words):
        code = 0
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return call


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Where the tiny task is."""
    monkeypatch.chdir(Path(__file__).parents[1] / "training")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that the program made, and a copy that says it had no regularizer."""
    out = tmp_path_factory.mktemp("runs")
    plain, r2 = out / "plain", out / "r2"
    command = [sys.executable, "-m", "taynode.lab.cli", "train", TASK, "--scale", "smoke"]
    command += ["--out", str(r2), "--weight", "0.01", "--json"]
    # Steps of equal length take less time to compile.
    command += ["--solver", "euler", "--steps", "2"]
    command += ["--set.evaluation.solver", "euler", "--set.evaluation.steps", "2"]
    here = Path(__file__).parents[1] / "training"
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    # Machines read the output; people are told nothing if they do not look.
    assert json.loads(done.stdout)["step"] == 16
    assert done.stderr == ""
    shutil.copytree(r2, plain)
    config = json.loads((plain / "config.json").read_text())
    config["regularizer"] |= {"name": "none", "weight": 0.0}
    (plain / "config.json").write_text(json.dumps(config))
    return plain, r2


def test_help_does_not_wait_for_jax():
    code = (
        "import sys\n"
        "from taynode.lab.cli import app\n"
        "for words in ([], ['train'], ['evaluate'], ['demo'], ['data'], ['report'], ['sweep']):\n"
        "    app([*words, '--help'], exit_on_error=False, result_action='return_value')\n"
        "    assert 'jax' not in sys.modules, words\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for word in ("--regularizer", "--weight", "--resume", "--json", "verify", "--executor"):
        assert word in done.stdout


# Python 3.13 takes the indentation from docstrings, and no command started there.
@pytest.mark.parametrize("compiled", [str, inspect.cleandoc])
def test_settings_are_described_on_every_python(compiled):
    class Settings:
        pass

    Settings.__doc__ = compiled("""Settings.

    - `epochs`: how many times
        all samples are seen.
    - `seed`: of all that is random.
    """)
    expected = {
        "epochs": "How many times all samples are seen.",
        "seed": "Of all that is random.",
    }
    assert options.descriptions(Settings) == expected


def test_help_has_groups(capsys):
    app(["--help"], exit_on_error=False, result_action="return_value")
    text = capsys.readouterr().out
    heads = re.findall(r"╭─ (.+?) ─+╮", text)
    assert heads == [
        "Start here",
        "Train and look",
        "Make a trained model cheap",
        "Many runs",
        "Others",
    ]
    for word in ("doctor", "--install-completion", "--version"):
        assert word in text


def test_each_setting_is_in_the_help_once(capsys):
    app(["train", "--help"], exit_on_error=False, result_action="return_value")
    words = capsys.readouterr().out.split()
    assert words.count("--learning-rate") == words.count("--seed") == 1
    assert {"--weight", "--budget", "--steps", "--set.evaluation.rtol", "--set.steer"} <= {*words}
    for hidden in ("--set.seed", "--set.optimizer.learning-rate", "--set.regularizer.weight"):
        assert hidden not in words


def test_doctor_finds_what_is_there(taynode, monkeypatch, tmp_path):
    monkeypatch.setenv("TAYNODE_DATA", str(tmp_path))
    code, text, _ = taynode("doctor", "--json")
    found = {row["what"]: row for row in json.loads(text)}
    assert code == 0
    assert found["taynode"]["found"].startswith(__version__)
    assert found["precision"]["found"] == "float64"
    assert found["devices"]["found"].startswith("cpu")
    assert found["data"]["found"] == str(tmp_path)
    assert found["a regularized solve"]["found"].startswith("right")
    assert {"python", "browser", "cache of data", "data set digits"} <= found.keys()


def test_doctor_says_what_is_broken(taynode, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("no luck\nat all")

    monkeypatch.setattr("taynode.solve.diffeqsolve", broken)
    monkeypatch.setenv("TAYNODE_DATA", "/no/such/folder")
    code, text, err = taynode("doctor")
    assert code == 1
    assert "RuntimeError: no luck" in text
    assert "which is no folder" in text
    assert "Traceback" not in err


def test_every_setting_is_described():
    for kind in (TrainConfig, SolveConfig, RegularizerConfig, OptimizerConfig):
        described = options.descriptions(kind)
        assert all(described.get(field.name) for field in dataclasses.fields(kind))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "digit"], "`task` 'digit' is not known: did you mean 'digits'"),
        (["train", TASK, "--scale", "labtop"], "did you mean 'laptop'?"),
        (
            ["train", TASK, "--budget", "0.5"],
            "`budget` must be a number of evaluations, not a share",
        ),
        (["train", TASK, "--regularizer", "r9", "--weight", "1"], "`regularizer` 'r9'"),
        (["train", TASK, "--solver", "dopri6"], "did you mean 'dopri8' or 'dopri5'?"),
        (["train", TASK, "--set.epochs", "0"], "`epochs` must be positive, got 0"),
        (["train", "nowhere:Task"], "there is no module 'nowhere'"),
        (["train", "tiny_task:points"], "is not a subclass of `taynode.lab.AbstractTask`"),
        (["train", TASK, "--config", "missing.toml"], "missing.toml: there is no such file"),
        (["evaluate", "nothing"], "nothing is not a run"),
        (["report", "nothing"], "nothing is not a run"),
        (["report"], "`runs`: name at least one"),
        (["compare"], "`runs`: name at least one"),
        (["data", "fetch", "mnits"], "mnist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_answered(taynode, words, message):
    code, out, err = taynode(*words)
    assert code in (1, 2)
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""


def test_unknown_flag_is_answered_with_the_nearest(taynode):
    code, out, err = taynode("train", TASK, "--wieght", "1")
    assert code != 0
    assert "--weight" in out + err


def test_run_is_never_overwritten(taynode, runs):
    code, _, err = taynode("train", TASK, "--scale", "smoke", "--out", runs[0])
    assert code == 2
    assert "pass `--resume` to go on with it" in err


def test_flags_override_a_file_and_single_settings_override_both(taynode, monkeypatch, tmp_path):
    seen = []
    run = lambda settings, *args, **kwargs: seen.append(settings) or {}
    monkeypatch.setattr(display, "run", run)
    file = tmp_path / "settings.toml"
    file.write_text("epochs = 1\nseed = 7\n[regularizer]\nname = 'r3'\nweight = 0.5\n")
    out = tmp_path / "run"
    code, *_ = taynode(
        *("train", TASK, "--scale", "smoke", "--config", file, "--out", out),
        *("--seed", "8", "--rtol", "1e-2", "--set.evaluation.atol", "1e-4", "--json"),
    )
    assert code == 0
    (settings,) = seen
    assert (settings.epochs, settings.seed) == (1, 8)
    assert (settings.regularizer.name, settings.regularizer.weight) == ("r3", 0.5)
    assert settings.training.rtol == settings.evaluation.rtol == 1e-2
    assert settings.training.atol == 1e-2
    assert settings.evaluation.atol == 1e-4


def test_file_with_an_unknown_setting_is_refused(taynode, tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("[training]\nsolvr = 'bosh3'\n")
    code, _, err = taynode("train", TASK, "--config", file)
    assert code == 2
    assert "training.solvr" in err
    assert "'solver'" in err


@pytest.mark.slow
def test_evaluate_under_another_solver_and_tolerance(taynode, runs):
    loose = lab.RunDirectory(runs[1]).rows()[-1]
    words = "evaluate", runs[1], "--task", TASK
    other = "--solver", "dopri5", "--rtol", "1e-9"
    code, text, _ = taynode(*words, *other, "--split", "train", "--json")
    assert code == 0
    tight = json.loads(text)
    assert tight["nfe"] > loose["train_nfe"]
    assert tight["num_samples"] == 64
    assert {"loss", "nfe_std", "r2", "r3", "kinetic", "jacobian"} <= tight.keys()
    code, text, _ = taynode(*words, "--samples", "4")
    assert code == 0
    assert "num_samples" in text


def test_compare_has_a_table_and_a_page(taynode, runs, tmp_path):
    page = tmp_path / "page.html"
    code, text, _ = taynode("compare", *runs, "--out", page, "--json")
    assert code == 0
    rows = json.loads(text)
    assert [row["regularizer"] for row in rows] == ["none", "r2"]
    assert page.read_text().startswith("<!DOCTYPE html>")
    code, text, _ = taynode("compare", *runs, "--out", page)
    assert code == 0
    assert "NFE" in text
    assert str(page) in text


@pytest.mark.parametrize("command", ["density", "sample"])
def test_other_models_have_no_density(taynode, runs, command):
    code, _, err = taynode(command, runs[1], "--task", TASK)
    assert code == 2
    assert "is a ToyFlow and no flow: it has no density" in err


def test_report_is_one_file(taynode, runs, tmp_path):
    page = tmp_path / "page.html"
    code, text, _ = taynode("report", *runs, "--out", page)
    assert code == 0
    assert text.strip() == str(page)
    assert page.exists()


def test_output_that_cannot_be_written(taynode, runs):
    code, _, err = taynode("report", *runs, "--out", "/proc/nowhere/page.html")
    assert code != 0
    assert "/proc/nowhere" in err
    assert "Traceback" not in err


def test_training_into_a_directory_that_cannot_be_made(taynode):
    code, _, err = taynode("train", TASK, "--scale", "smoke", "--out", "/proc/nowhere/run")
    assert code != 0
    assert "/proc/nowhere" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_advice_names_a_solver(taynode, runs, tmp_path, monkeypatch):
    monkeypatch.setattr("taynode.advice.search.EXPLICIT", (dfx.Bosh3(),))
    plot = tmp_path / "advice.png"
    code, out, _ = taynode("advise", runs[1], "--task", TASK, "--plot", plot, "--samples", 4)
    assert code == 0
    assert "Use Bosh3 with rtol=" in out
    assert "Present setting: Euler on a fixed grid, 2.0 evaluations" in out
    assert plot.read_bytes()[1:4] == b"PNG"


def test_a_negative_price_is_named_as_it_was_written(taynode):
    # The message was about `weight`, which nobody had passed.
    code, _, err = taynode("train", "digits", "--price", "-1")
    assert code == 2
    assert "`price` must be finite and not negative, got -1" in err
