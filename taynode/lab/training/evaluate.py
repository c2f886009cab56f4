"""Everything that is reported of a model."""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import jax.tree_util as jtu
import numpy as np

from ...quadrature import Augmented
from ...regularizers import AbstractRegularizer
from ..config import SolveConfig
from ..tasks.base import AbstractTask
from .build import make_solve, reported
from .step import make_evaluation


EVAL_BATCH = 100
PENALTY_SAMPLES = 100
QUANTILES = (0.05, 0.5, 0.95)


class Evaluator:
    """Evaluates models of one task with one way of solving; compiled once.

    **Arguments:**

    - `task`, `config`: what to solve, and how.
    - `seed`: of the noise in the evaluation.
    - `regularizer`: one whose value is of interest, besides R_2, R_3, K and B.
    """

    def __init__(
        self,
        task: Any,
        config: SolveConfig,
        *,
        seed: int = 0,
        regularizer: AbstractRegularizer | None = None,
    ):
        self.task, self.key = task, jr.key(seed)
        self.plain = eqx.filter_jit(make_evaluation(task, make_solve(config)))
        # What is timed. Further metrics may take solves of their own.
        self.timed = self.plain
        if _has_more_metrics(task):
            self.timed = eqx.filter_jit(make_evaluation(task, make_solve(config), more=False))
        regularizers = reported(task.charged)
        if regularizer is not None:
            regularizers["penalty"] = regularizer
        charged = make_solve(config, regularizer=regularizers, quadrature=Augmented())
        self.charged = eqx.filter_jit(make_evaluation(task, charged, more=False))

    def samples(self, model: Any, data: Any, num_samples: int | None = None) -> Any:
        """What is known of each sample, as arrays."""
        total = jtu.tree_leaves(data)[0].shape[0]
        count = total if num_samples is None else min(num_samples, total)
        parts = []
        for start in range(0, count, EVAL_BATCH):
            batch, valid = _batch(data, start, count)
            samples, _ = self.plain(model, batch, self.key)
            parts.append(jtu.tree_map(lambda x, n=valid: np.asarray(x)[:n], samples))
        return jtu.tree_map(lambda *xs: np.concatenate(xs), *parts)

    def penalties(self, model: Any, data: Any) -> dict[str, float]:
        """R_2, R_3, K and B of the model, and the penalty, on the first samples."""
        count = min(PENALTY_SAMPLES, jtu.tree_leaves(data)[0].shape[0])
        batch, valid = _batch(data, 0, count)
        _, penalties = self.charged(model, batch, self.key)
        return {name: float(np.mean(np.asarray(x)[:valid])) for name, x in penalties.items()}

    def report(self, model: Any, data: Any, num_samples: int | None = None) -> dict[str, Any]:
        """The means over samples, and the distribution of evaluations, as plain numbers."""
        samples = self.samples(model, data, num_samples)
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

    def forward_seconds(self, model: Any, data: Any, *, repeats: int = 5) -> float:
        """The time of a forward solve of a batch, sample by sample, compilation apart."""
        batch, _ = _batch(data, 0, EVAL_BATCH)
        run = lambda: jax.block_until_ready(self.timed(model, batch, self.key))
        run()
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return float(np.median(times))


def _has_more_metrics(task: Any) -> bool:
    return getattr(type(task), "more_metrics", None) is not AbstractTask.more_metrics


def _batch(data: Any, start: int, count: int) -> tuple[Any, int]:
    """A batch of fixed size, filled up with its first sample, and how many are real."""
    stop = min(start + EVAL_BATCH, count)
    index = jnp.where(jnp.arange(EVAL_BATCH) < stop - start, start + jnp.arange(EVAL_BATCH), start)
    return jtu.tree_map(lambda x: jnp.asarray(x)[index], data), stop - start
