"""Evaluations of a model."""

import time

import equinox as eqx
import jax
import jax.tree_util as jtu
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from ...quadrature import Augmented
from ...regularizers import AbstractRegularizer
from ..config import SolveConfig
from ..launch import tell_alive
from ..tasks.base import AbstractTask, Evaluated, Samples
from .build import make_solve, reported
from .devices import everywhere
from .keys import Keys
from .step import make_evaluation, make_more_metrics


EVAL_BATCH = 100
PENALTY_SAMPLES = 100
QUANTILES = (0.05, 0.5, 0.95)


class Evaluator:
    """Evaluates models of one task with one solver. Its functions are compiled once.

    **Arguments:**

    - `task`: the task of the models.
    - `config`: how to solve.
    - `seed`: the seed of the run. The noise of an evaluation follows from it, see `Keys`.
    - `regularizer`: a regularizer whose value is reported besides R_2, R_3, K and B.
    - `mesh`: devices that share the samples, if there are several. Models and data are then on all
        of them, see `taynode.lab.training.devices.everywhere`.
    """

    def __init__(
        self,
        task: AbstractTask,
        config: SolveConfig,
        *,
        seed: int = 0,
        regularizer: AbstractRegularizer | None = None,
        mesh: Mesh | None = None,
    ):
        self.task, self.keys, self.mesh = task, Keys(seed), mesh
        solve = make_solve(config)
        how = {"double": config.needs_double, "mesh": mesh}
        self.plain = eqx.filter_jit(make_evaluation(task, solve, **how))
        # Apart, because further metrics may make solves of their own, which must not be timed.
        self.more = eqx.filter_jit(make_more_metrics(task, solve, **how))
        regularizers = reported(task.penalized)
        if regularizer is not None:
            regularizers["penalty"] = regularizer
        penalized = make_solve(config, regularizer=regularizers, quadrature=Augmented())
        self.penalized = eqx.filter_jit(make_evaluation(task, penalized, **how))

    def samples(
        self,
        model: eqx.Module,
        data: Samples,
        num_samples: int | None = None,
        *,
        split: str,
        more: bool = True,
    ) -> Evaluated:
        """The loss, metrics and evaluations of each sample, as arrays.

        **Arguments:**

        - `model`: the model.
        - `data`: a pytree of arrays with samples along the first axis.
        - `num_samples`: the number of samples, from the first on; all by default.
        - `split`: the name of the data, `"train"`, `"test"` or `"valid"`. Each has its own noise.
        - `more`: whether to compute the task's `more_metrics`, which may need solves of their own.
        """
        total = jtu.tree_leaves(data)[0].shape[0]
        count = total if num_samples is None else min(num_samples, total)
        parts = []
        for i, start in enumerate(range(0, count, EVAL_BATCH)):
            batch, valid = self._batch(data, start, count)
            samples, _ = self.plain(model, batch, self._everywhere(self.keys.loss(split, i)))
            if more:
                key = self._everywhere(self.keys.more_metrics(split, i))
                metrics = {**samples.metrics, **self.more(model, batch, key)}
                samples = samples._replace(metrics=metrics)
            parts.append(jtu.tree_map(lambda x, n=valid: np.asarray(x)[:n], samples))
        return jtu.tree_map(lambda *xs: np.concatenate(xs), *parts)

    def penalties(self, model: eqx.Module, data: Samples, *, split: str) -> dict[str, float]:
        """R_2, R_3, K and B of the model, and the penalty, on the first samples of a split."""
        count = min(PENALTY_SAMPLES, jtu.tree_leaves(data)[0].shape[0])
        batch, valid = self._batch(data, 0, count)
        key = self._everywhere(self.keys.penalties(split))
        _, penalties = self.penalized(model, batch, key)
        return {name: float(np.mean(np.asarray(x)[:valid])) for name, x in penalties.items()}

    def loss(
        self, model: eqx.Module, data: Samples, num_samples: int | None = None, *, split: str
    ) -> float:
        """The mean loss, without anything else. The arguments are those of `samples`."""
        samples = self.samples(model, data, num_samples, split=split, more=False)
        return float(np.average(samples.loss, weights=samples.weight))

    def report(
        self, model: eqx.Module, data: Samples, num_samples: int | None = None, *, split: str
    ) -> dict[str, int | float]:
        """Means over samples, and the distribution of the number of evaluations.

        The arguments are those of `samples`.
        """
        samples = self.samples(model, data, num_samples, split=split)
        nfe = samples.nfe.astype(float)
        mean = lambda x: float(np.average(x, weights=samples.weight))
        out = {
            "loss": mean(samples.loss),
            **{name: mean(x) for name, x in samples.metrics.items()},
            **self.task.summaries(samples),
            "nfe": float(nfe.mean()),
            "nfe_std": float(nfe.std()),
            "nfe_max": int(nfe.max()),
            "num_samples": len(nfe),
            "num_failed": int(samples.failed.sum()),
        }
        for q in QUANTILES:
            out[f"nfe_q{round(100 * q):02d}"] = float(np.quantile(nfe, q))
        return out

    def forward_seconds(
        self, model: eqx.Module, data: Samples, *, split: str, repeats: int = 5
    ) -> float:
        """The time of a forward solve of a batch, sample by sample, without compilation.

        The solve is that of the first batch of `samples`, with the same noise.
        """
        batch, _ = self._batch(data, 0, EVAL_BATCH)
        key = self._everywhere(self.keys.loss(split, 0))
        run = lambda: jax.block_until_ready(self.plain(model, batch, key))
        run()
        times = []
        for _ in range(repeats):
            tell_alive()
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    def _everywhere(self, key: PRNGKeyArray) -> PRNGKeyArray:
        return everywhere(key, self.mesh)

    def _batch(self, data: Samples, start: int, count: int) -> tuple[PyTree[Array], int]:
        """A batch of fixed size, filled up with its first sample, and the number of real samples.

        Each device has as many.
        """
        # Large evaluations may take longer than steps may.
        tell_alive()
        num_devices = 1 if self.mesh is None else self.mesh.size
        places = np.arange(-(-EVAL_BATCH // num_devices) * num_devices)
        stop = min(start + EVAL_BATCH, count)
        return _take(data, np.where(places < stop - start, start + places, start)), stop - start


@jax.jit
def _take(data: Samples, indices: Int[Array, "batch"]) -> PyTree[Array]:
    return jtu.tree_map(lambda x: x[indices], data)
