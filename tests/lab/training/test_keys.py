"""No random key is used twice: not in training, not between batches, splits, purposes or seeds."""

import collections
import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from taynode.lab import Data
from taynode.lab.config import RegularizerConfig, SolveConfig
from taynode.lab.report.flows import draw_density, draw_samples
from taynode.lab.training.evaluate import Evaluator
from taynode.lab.training.keys import Keys
from taynode.lab.training.running import Training
from taynode.models import ContinuousFlow, HutchinsonDivergence
from taynode.registry import UnknownNameError

from .tiny_task import points, Tiny, TinyFlow


BATCH = 4
# Two batches of each split.
NUM_TRAIN, NUM_TEST, NUM_VALID = 8, 6, 5
NUM_BATCHES = 6
EULER = SolveConfig(solver="euler", steps=1)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr("taynode.lab.training.evaluate.EVAL_BATCH", BATCH)


class Recording(Tiny):
    """Notes every key that it is given."""

    name: ClassVar[str] = "test_keys:Recording"

    def __init__(self):
        self.used = collections.defaultdict(list)

    def note(self, use, key):
        seen = lambda data: self.used[use].append(tuple(np.asarray(data).tolist()))
        jax.debug.callback(seen, jr.key_data(key))

    def load(self):
        return Data(points(NUM_TRAIN, 0), points(NUM_TEST, 1), points(NUM_VALID, 2))

    def model(self, key):
        self.note("model", key)
        return super().model(key)

    def loss(self, model, batch, solve, key):
        self.note("loss", key)
        return super().loss(model, batch, solve, key)

    def training_loss(self, model, batch, solve, key, epoch):
        self.note("training", key)
        return super().loss(model, batch, solve, key)

    def more_metrics(self, model, batch, solve, key):
        self.note("more", key)
        return {}


# Every batch of every split had the same keys, and the first two of them were those from which
# the weights and the noise of training came.
def test_no_key_is_used_twice_in_a_run(monkeypatch):
    # Timing repeats an evaluation, with its keys.
    monkeypatch.setattr(Evaluator, "forward_seconds", lambda *args, **options: 0.0)
    used = collections.defaultdict(list)
    for seed in (0, 1):
        task = Recording()
        config = dataclasses.replace(
            task.defaults("smoke"),
            seed=seed,
            batch_size=2,
            training=EULER,
            evaluation=EULER,
            regularizer=RegularizerConfig(),
        )
        training = Training(config, task)
        training.row(0)
        training.advance(0, 3)
        jax.effects_barrier()
        for use, keys in task.used.items():
            used[use] += keys
    # One more loss than there are batches, for the penalties.
    expected = {
        "model": 1,
        "training": 3,
        "loss": (NUM_BATCHES + 1) * BATCH,
        # Those of validation would be thrown away.
        "more": (NUM_BATCHES - 2) * BATCH,
    }
    assert {use: len(keys) for use, keys in used.items()} == {k: 2 * n for k, n in expected.items()}
    counts = collections.Counter(key for keys in used.values() for key in keys)
    assert counts.most_common(1)[0][1] == 1


class Uneven(TinyFlow):
    """A flow whose samples need different numbers of evaluations, with a random divergence."""

    def model(self, key):
        flow = super().model(key)
        field = eqx.tree_at(lambda f: f.layers[-1].weight, flow.vector_field, replace_fn=steeper)
        return ContinuousFlow(field, (2,), HutchinsonDivergence("gaussian"))


def steeper(weight):
    return 6 * weight


# The column of sampling NFE averaged copies of the same draws, equal for train and test.
@pytest.mark.slow
def test_draws_of_an_evaluation_differ_between_batches_and_splits():
    task = Uneven()
    model = task.model(jr.key(0))
    # The same sample again and again: what differs is due to the noise.
    data = jnp.ones((2 * BATCH, 2))
    evaluator = Evaluator(task, SolveConfig(rtol=1e-5, atol=1e-5))
    test, train = (evaluator.samples(model, data, split=split) for split in ("test", "train"))
    for of in (lambda x: x.metrics["sampling_nfe"], lambda x: x.loss):
        first, second = of(test)[:BATCH], of(test)[BATCH:]
        assert not np.array_equal(first, second)
        assert not np.array_equal(of(test), of(train))
        assert len(np.unique(of(test))) > 1
    # Evaluations are comparable: the same split of the same run has the same noise.
    again = evaluator.samples(model, data, split="test")
    np.testing.assert_array_equal(again.loss, test.loss)
    # Its programs are the same for all seeds.
    evaluator.keys = Keys(1)
    assert not np.array_equal(evaluator.samples(model, data, split="test").loss, test.loss)


def test_a_split_that_does_not_exist_is_refused():
    with pytest.raises(UnknownNameError, match="`split` 'tests' is not known: did you mean 'test'"):
        Keys(0).loss("tests", 0)


# Both began at `jr.key(seed)`, as the weights did; all points of a density shared one key.
def test_pictures_of_flows_have_noise_of_their_own(monkeypatch):
    used = []

    class Noted(ContinuousFlow):
        def log_prob(self, x, solve=None, *, key=None):
            jax.debug.callback(lambda data: used.append(tuple(data.tolist())), jr.key_data(key))
            return jnp.zeros(1), None

        def sample(self, key, num, solve=None):
            jax.debug.callback(lambda data: used.append(tuple(data.tolist())), jr.key_data(key))
            solution = super().from_base(jnp.zeros((num, 2)), solve)[1]
            return jnp.zeros((num, 2)), solution

    monkeypatch.setattr("taynode.lab.report.flows.BATCH", 5)
    model = Noted(TinyFlow().model(jr.key(0)).vector_field, (2,))
    draw_samples(None, model, EULER, num=10)
    draw_density(model, EULER, points=3)
    jax.effects_barrier()
    assert len(used) == len(set(used)) == 2 * 5 + 2 * 5
    keys = Keys(0)
    others = [keys.model, keys.training, *jr.split(keys.model, 8), *jr.split(keys.training, 8)]
    assert not {tuple(jr.key_data(key).tolist()) for key in others} & set(used)
