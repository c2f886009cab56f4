"""The examples run."""

import importlib.util
import json
import pathlib

import jax
import pytest

from taynode.lab.cli import main

from .lab.rows import without_penalties


EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_from_diffrax_trains_with_a_regularizer():
    module = load("from_diffrax")
    # optax's schedules promote.
    with jax.numpy_dtype_promotion("standard"):
        loss, accuracy, nfe = module.train(module.tn.TotalDerivative(order=3), 1e-3, 2)
    assert 0 < loss < 10
    assert 0 <= accuracy <= 1
    # Tsit5 with a given first step: one evaluation, and six an attempt, in the mean.
    assert nfe >= 7


@pytest.mark.slow
def test_budget_trains(capsys):
    with jax.numpy_dtype_promotion("standard"):
        load("budget").main(num_steps=12, budgets=(1000,))
    printed = capsys.readouterr().out
    assert "budget 1000:" in printed
    assert "less than the budget of 1000: the weight is 0" in printed


@pytest.mark.slow
def test_a_latent_ode_trains_to_a_budget(capsys):
    with jax.numpy_dtype_promotion("standard"):
        load("latent_ode").main(num_steps=12, budgets=(1000,))
    plain, budgeted = capsys.readouterr().out.splitlines()
    # A budget above the need changes nothing.
    assert plain.partition(":")[2] == budgeted.partition(":")[2]
    assert "budget 1000" in budgeted


@pytest.mark.slow
def test_ease_makes_points(capsys):
    with jax.numpy_dtype_promotion("standard"):
        front = load("ease").main(num_steps=4, nfe=15)
    assert [p.kind for p in front.points] == ["given", "scouted", "refitted"]
    assert "given" in capsys.readouterr().out


@pytest.mark.slow
def test_cde_is_cheaper_with_a_smooth_control(capsys):
    with jax.numpy_dtype_promotion("standard"):
        load("cde").main(num_steps=3)
    lines = capsys.readouterr().out.splitlines()
    hermite, natural, charged = (int(line.split()[-2]) for line in lines)
    assert charged <= natural < 0.6 * hermite


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hybrid", "orbit"])
def test_mechanistic_models_train_to_budgets(name, capsys):
    with jax.numpy_dtype_promotion("standard"):
        load(name).main(num_steps=12, budgets=(1000,))
    exact, line = capsys.readouterr().out.splitlines()
    assert 30 < float(exact.split()[-2]) < 200
    assert "budget 1000:" in line
    assert "the weight is 0" in line


@pytest.mark.slow
def test_flow_matching_makes_samples_cheap(capsys):
    with jax.numpy_dtype_promotion("standard"):
        load("flow_matching").main()
    lines = capsys.readouterr().out.splitlines()
    nfe = [float(line.split(" evaluations")[0].split()[-1]) for line in lines]
    few = [float(line.split("4 Euler steps ")[1].split(",")[0]) for line in lines]
    assert nfe[1] < 0.85 * nfe[0]
    assert few[1] < few[0]


@pytest.mark.slow
def test_sde_makes_fewer_steps(capsys):
    with jax.numpy_dtype_promotion("standard"):
        load("sde").main()
    drift = [
        int(x.split(" evaluations")[0].split()[-1])
        for x in capsys.readouterr().out.split("(of")[1:]
    ]
    assert drift[1] < 0.8 * drift[0]


@pytest.mark.slow
def test_a_budget_is_kept():
    module = load("budget")
    with jax.numpy_dtype_promotion("standard"):
        status, _, nfe = module.train(module.tn.Budget(30), 600)
    assert status.name in ("holding", "approaching")
    assert nfe == pytest.approx(30, rel=0.1)


def test_own_quadrature_agrees_with_augmented(capsys):
    load("own_quadrature").main()
    own, augmented = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    # The tolerance of the solver is 1e-6; dense output is one order worse than the solution.
    assert own == pytest.approx(augmented, rel=1e-4)


@pytest.mark.slow
def test_from_diffrax_solves_cheaper_at_the_same_loss(capsys):
    with jax.numpy_dtype_promotion("standard"):
        load("from_diffrax").main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["loss", "accuracy", "NFE"]
    rows = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in lines}
    (loss, _, nfe), (cheaper_loss, _, cheaper_nfe) = rows["unregularized"], rows["R_3"]
    assert cheaper_loss < loss + 0.02
    assert cheaper_nfe < 0.75 * nfe


@pytest.mark.slow
def test_own_task_is_trained_by_the_command(tmp_path, monkeypatch, capsys):
    # Where its users are.
    monkeypatch.chdir(EXAMPLES)
    command = ["train", "own_task:Spiral", "--scale", "smoke", "--regularizer", "r3"]
    command += ["--weight", "1e-3", "--out", str(tmp_path / "run"), "--json"]
    # Steps of equal length take less time to compile.
    command += ["--solver", "euler", "--steps", "4"]
    command += ["--set.evaluation.solver", "euler", "--set.evaluation.steps", "4"]
    with jax.numpy_dtype_promotion("standard"), without_penalties(), pytest.raises(SystemExit) as x:
        main(command)
    assert not x.value.code
    row = json.loads(capsys.readouterr().out)
    assert row["step"] == 10
    assert row["test_error"] < 0.7
    # As its users are told.
    assert len((EXAMPLES / "own_task.py").read_text().splitlines()) <= 40
