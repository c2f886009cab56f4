"""Paths against closed forms, and a real run from its training to its page."""

import dataclasses
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import taynode as tn
from taynode.lab import AbstractTask, find_task, Outcome, train
from taynode.lab.config import RegularizerConfig, SolveConfig
from taynode.lab.report.page import write_report
from taynode.lab.report.paths import trace
from taynode.lab.report.record import record_samples
from taynode.lab.report.samples import read_samples
from taynode.lab.training.evaluate import Evaluator


TOLERANCE = SolveConfig(rtol=1e-8, atol=1e-8)


class Batch(NamedTuple):
    inputs: Any
    labels: Any


class Growth(eqx.Module):
    """y' = a y, each coordinate with a rate of its own."""

    rates: Any

    def vector_field(self, t, y, args):
        return self.rates * y


class Task(AbstractTask):
    defaults = load = model = None

    def loss(self, model, batch, solve, key):
        inputs = batch.inputs.reshape(len(batch.inputs), -1)
        solution = solve(model.vector_field, inputs, key=key)
        return Outcome(jnp.mean(solution.ys[-1]), solution, {})


def make_data(size, num=40):
    random = np.random.default_rng(0)
    inputs = jnp.asarray(random.uniform(0.5, 2.0, (num, size)))
    return Batch(inputs, jnp.asarray(random.integers(0, 3, num)))


@pytest.fixture(scope="module")
def evaluator():
    """One for all tests here: it takes longest to compile."""
    return Evaluator(Task(), TOLERANCE)


@pytest.fixture(scope="module")
def traced(evaluator):
    """The first is a line, the second has five dimensions, as images of five pixels."""
    out = {}
    for size in (1, 5):
        model = Growth(jnp.linspace(1.0, 2.0, size))
        data = make_data(size)
        images = data._replace(inputs=data.inputs.reshape(-1, 1, size))
        arrays = trace(Task(), model, TOLERANCE, images, images, order=4, evaluator=evaluator)
        out[size] = model, data, arrays
    return out


@pytest.mark.parametrize("size", [1, 5])
def test_paths_are_those_of_the_equation(traced, size):
    model, data, arrays = traced[size]
    times = arrays["path_times"]
    states = arrays["path_mean"] + arrays["path_states"] @ arrays["path_basis"]
    begin = states[:, 0]
    growth = np.exp(np.asarray(model.rates) * times[:, None])
    np.testing.assert_allclose(states, begin[:, None] * growth, rtol=1e-5)
    inputs = np.asarray(data.inputs, np.float32)
    nearest = np.abs(begin[:, None] - inputs).max(-1)
    np.testing.assert_allclose(nearest.min(axis=1), 0, atol=1e-5)
    if size == 1:
        assert (np.diff(begin[:, 0]) > 0).all()  # evenly spread
    else:
        assert (nearest.argmin(axis=1) == np.arange(24)).all()  # the first ones
        assert (arrays["path_labels"] == np.asarray(data.labels)[:24]).all()


@pytest.mark.parametrize("size", [1, 5])
def test_variance_is_that_of_all_states(traced, size):
    _, _, arrays = traced[size]
    states = arrays["path_mean"] + arrays["path_states"] @ arrays["path_basis"]
    expected = states.reshape(-1, size).var(axis=0).sum()
    np.testing.assert_allclose(arrays["path_variance"], expected, rtol=1e-4)


@pytest.mark.parametrize("size", [1, 5])
def test_derivatives_are_those_of_the_equation(traced, size):
    model, _, arrays = traced[size]
    states = arrays["path_mean"] + arrays["path_states"] @ arrays["path_basis"]
    assert len(arrays["path_derivative"]) == 4
    for k, found in enumerate(arrays["path_derivative"], start=1):
        expected = np.sqrt(np.mean((np.asarray(model.rates) ** k * states) ** 2, axis=-1))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 5])
def test_steps_and_counts_are_those_of_the_solve(traced, size):
    model, data, arrays = traced[size]

    @jax.jit
    @jax.vmap
    def solve(y0):
        return tn.diffeqsolve(
            dfx.ODETerm(model.vector_field),
            dfx.Dopri5(),
            0.0,
            1.0,
            None,
            y0,
            stepsize_controller=dfx.PIDController(rtol=1e-8, atol=1e-8),
        ).stats

    stats = solve(data.inputs)
    assert (arrays["test_nfe"] == np.asarray(stats["nfe"])).all()
    assert (arrays["train_nfe"] == arrays["test_nfe"]).all()
    steps = arrays["step_times"]
    assert np.isfinite(steps).any(axis=0).all()
    np.testing.assert_allclose(np.nanmax(steps, axis=1), 1.0, rtol=1e-6)
    if size == 5:
        accepted = np.asarray(stats["num_accepted_steps"])[:24]
        assert (np.isfinite(steps).sum(axis=1) == accepted).all()
    kinds = {array.dtype.kind for array in arrays.values()}
    assert kinds <= {"f", "i"}


def test_a_task_may_begin_elsewhere(evaluator):
    """Paths of a pytree of states, under another vector field and for another time."""

    class Elsewhere(Task):
        interval = (1.0, 3.0)

        def initial_state(self, model, batch):
            inputs = batch.inputs.reshape(-1, 1)
            return {"a": inputs, "b": -inputs}

        def vector_field(self, model):
            return lambda t, y, args: {"a": -y["a"], "b": 0.0 * y["b"]}

    arrays = trace_line(Elsewhere(), TOLERANCE, evaluator)
    assert (arrays["path_times"][0], arrays["path_times"][-1]) == (1.0, 3.0)
    states = arrays["path_states"]
    np.testing.assert_allclose(states[:, -1, 0], states[:, 0, 0] * np.exp(-2), rtol=1e-5)
    np.testing.assert_allclose(states[:, -1, 1], states[:, 0, 1], rtol=1e-6)
    assert arrays["path_derivative"].shape == (3, 24, 101)


def trace_line(task, config, evaluator):
    data = make_data(1)
    images = data._replace(inputs=data.inputs.reshape(-1, 1, 1))
    return trace(task, Growth(jnp.ones(1)), config, images, images, evaluator=evaluator)


def test_a_failed_solve_leaves_holes(evaluator):
    """A solution that goes to infinity before the end."""

    class Explosion(Task):
        def vector_field(self, model):
            return lambda t, y, args: y**2

    config = SolveConfig(rtol=1e-8, atol=1e-8, max_steps=20)
    arrays = trace_line(Explosion(), config, evaluator)
    assert np.isnan(arrays["path_states"]).any()
    assert not np.isinf(arrays["step_times"]).any()


@pytest.mark.slow
def test_a_real_run_gives_a_page(open_page, tmp_path):
    """The toy, trained for a few steps on few samples."""
    task = find_task("toy")
    small = jax.tree_util.tree_map(lambda x: np.asarray(x)[:60], task.load())
    task.load = lambda: small
    config = dataclasses.replace(
        task.defaults("smoke"),
        epochs=2,
        batch_size=30,
        num_evaluations=1,
        eval_samples=20,
        training=SolveConfig(solver="euler", steps=2),
        evaluation=SolveConfig(solver="euler", steps=4),
        regularizer=RegularizerConfig(),
    )
    # Schedules of optax multiply a step, an integer, by a float.
    with jax.numpy_dtype_promotion("standard"):
        run = train(config, task, tmp_path / "run", on_finish=record_samples).path
    assert set(read_samples(run)) >= {"train_nfe", "test_nfe", "path_times", "step_times"}
    page = open_page(write_report([run], tmp_path / "report.html"))
    assert "evaluations per test sample" in page.inner_text("h1")
    assert page.locator("[data-figure]").count() == 5
    assert page.locator(".notes").count() == 0
