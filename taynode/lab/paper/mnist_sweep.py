"""Runs on MNIST with many orders and weights of the penalty; most figures use them."""

import dataclasses
from collections.abc import Sequence

from ..config import OptimizerConfig, RegularizerConfig, SolveConfig, TrainConfig
from ..sweep.plan import EvaluationConfig, Job
from .arms import defaults_of, jobs_of


ORDERS = (2, 3, 4, 5)
# The weights of R_2. Each further order has a tenth of them, since derivatives grow about as much.
WEIGHTS = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0, 10.0)
NUM_IMAGES, NUM_EPOCHS = 10_000, 24
# The calibration is measured of the unregularized runs, and of those of this order and weight.
CALIBRATION = "calibration"
CALIBRATED = (3, 1e-2)

# Solvers by their order. Adams adapts its order.
SOLVERS = {2: "heun", 3: "bosh3", 4: "owren_zennaro4", 5: "dopri5"}
ADAPTIVE_ORDER = "adams"
# Evaluations per step. Smaller differences of counts mean nothing.
STEP = {"heun": 2, "bosh3": 3, "owren_zennaro4": 5, "dopri5": 6, ADAPTIVE_ORDER: 2}


def _at(name: str, tolerance: float, precision: str = "float32", *also: str) -> EvaluationConfig:
    solve = SolveConfig(solver=name, rtol=tolerance, atol=tolerance, max_steps=16_384)
    return EvaluationConfig(f"{name} {tolerance:g}", solve, precision, 200, (*also, "test"))


EVALUATIONS = (
    *(_at(name, 1e-5) for name in SOLVERS.values()),
    _at(ADAPTIVE_ORDER, 1e-5, "float64"),
    _at("dopri5", 1.4e-8, "float64", "train"),
)


def config(scale: str) -> TrainConfig:
    """The settings that all runs share."""
    defaults = defaults_of("mnist", scale)
    if scale == "laptop":
        # The model learns slowly: the task's own 12 epochs leave more loss than any weight adds.
        return dataclasses.replace(
            defaults,
            train_samples=NUM_IMAGES,
            final_samples=1000,
            epochs=NUM_EPOCHS,
            batch_size=50,
            training=SolveConfig(steps=2),
            optimizer=OptimizerConfig("sgd", 0.1, schedule="cosine"),
        )
    return dataclasses.replace(defaults, train_samples=2000) if scale == "smoke" else defaults


def half_a_step(evaluation: str, nfe: float) -> float:
    """Half a step, as a share of so many evaluations; at least 2 %."""
    return max(0.02, STEP[evaluation.partition(" ")[0]] / 2 / nfe)


def weight_of(order: int, weight: float) -> float:
    """The weight of R_K that corresponds to a weight of R_2."""
    return float(f"{weight * 10.0 ** (2 - order):.6g}")


def regularized(order: int, weight: float) -> RegularizerConfig:
    """R_K, by the weight of R_2. Each image has a time of its own, which is much less noisy."""
    return RegularizerConfig(f"r{order}", weight_of(order, weight))


def jobs(
    scale: str,
    seeds: Sequence[int],
    *,
    orders: Sequence[int] = ORDERS,
    weights: Sequence[float] = WEIGHTS,
) -> list[Job]:
    """Unregularized, and all orders with all weights; fewer at `smoke`."""
    if scale == "smoke":
        orders, weights = orders[:2], (CALIBRATED[1],)
    arms = [RegularizerConfig(), *(regularized(k, w) for k in orders for w in weights)]
    calibrated = arms[0], regularized(*CALIBRATED)
    evaluations = EVALUATIONS if scale != "smoke" else EVALUATIONS[1:4:2]
    measurements = lambda arm, seed: (CALIBRATION,) if arm in calibrated else ()
    return jobs_of(config(scale), arms, seeds, evaluations, measurements)
