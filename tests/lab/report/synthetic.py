"""Runs made by hand, with numbers that a training could have written."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from taynode.lab.config import RegularizerConfig, SolveConfig, to_dict, TrainConfig
from taynode.lab.report.samples import write_samples


ENVIRONMENT = {"python": "3.11.2", "jax": "0.10.2", "device": "cpu", "cores": "2"}


def make_config(name: str = "none", weight: float = 0.0, **settings: Any) -> dict[str, Any]:
    tolerance = SolveConfig(rtol=1e-6, atol=1e-6)
    regularizer = RegularizerConfig(name, weight)
    defaults: dict[str, Any] = {"task": "toy", "epochs": 10, "training": tolerance}
    return to_dict(TrainConfig(regularizer=regularizer, **(defaults | settings)))


def make_rows(
    nfe: float, error: float | None, *, seed: int = 0, num_rows: int = 6
) -> list[dict[str, Any]]:
    """From 20 evaluations up to `nfe`."""
    rows = []
    for i in range(num_rows):
        progress = i / max(1, num_rows - 1)
        current = 20 + progress * (nfe - 20) if num_rows > 1 else nfe
        row: dict[str, Any] = {"step": 100 * i, "epoch": 10 * progress, "seed": seed}
        for split, extra in (("train", 0.0), ("test", 0.5)):
            row[f"{split}_loss"] = 2.0 * 10 ** (-1.5 * progress) + 0.1 * extra
            if error is not None:
                row[f"{split}_error"] = 0.9 + progress * (error - 0.9)
            row |= {f"{split}_nfe": current, f"{split}_nfe_std": 3.5}
            row |= {f"{split}_nfe_q05": current - 6, f"{split}_nfe_q95": current + 6}
            row |= {f"{split}_num_samples": 200, f"{split}_num_failed": 0}
        row |= {"r2": 1.5, "r3": 12.0, "kinetic": 0.4, "jacobian": 0.02}
        row |= {"train_seconds": 2.0 * i, "compile_seconds": 1.5, "forward_seconds": 0.0123}
        rows.append(row)
    return rows


def make_samples(nfe: int, *, size: int = 1, order: int = 3, seed: int = 0) -> dict[str, Any]:
    """Curved paths in `size` dimensions, with more steps the more evaluations there are."""
    random = np.random.default_rng(seed)
    times = np.linspace(0, 1, 41)
    starts = random.uniform(-1, 1, (24, 1, size))
    bends = 1 + 0.3 * np.sin(nfe / 5 * times)[None, :, None]
    states = starts * (1 + 2 * times[None, :, None]) * bends
    derivative = np.stack([np.abs(states).mean(-1) * 10.0**k for k in range(order)]) + 0.01
    count = max(2, nfe // 6)
    steps = np.tile(np.linspace(0, 1, count + 1)[1:], (24, 1))
    steps[::2, -1] = np.nan
    kept = min(size, 8)
    basis = np.linalg.qr(random.standard_normal((size, kept)))[0].T if size > 2 else np.eye(size)
    return {
        "train_nfe": nfe + 6 * random.integers(-2, 3, 300),
        "test_nfe": nfe + 6 * random.integers(-1, 3, 100),
        "path_times": times,
        "path_states": states @ basis.T,
        "path_mean": np.zeros(size),
        "path_basis": basis,
        "path_variance": np.asarray(states.reshape(-1, size).var(axis=0).sum()),
        "path_derivative": derivative,
        "step_times": steps,
        "path_labels": random.integers(0, 10, 24),
    }


def write_run(
    path: Path,
    *,
    config: dict[str, Any] | None = None,
    rows: list[dict[str, Any]] | None = None,
    samples: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = ENVIRONMENT,
) -> Path:
    """A run directory with whatever is given."""
    path.mkdir(parents=True)
    for file, value in (("config.json", config), ("environment.json", environment)):
        if value is not None:
            (path / file).write_text(json.dumps(value))
    if rows is not None:
        (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if samples is not None:
        write_samples(path, samples)
    return path


def write_pair(path: Path, *, size: int = 1, error: bool = False) -> list[Path]:
    """The typical case: without and with regularizer."""
    return [
        write_run(
            path / "without",
            config=make_config(),
            rows=make_rows(41.8, 0.044 if error else None),
            samples=make_samples(44, size=size),
        ),
        write_run(
            path / "with",
            config=make_config("r2", 0.1),
            rows=make_rows(27.4, 0.028 if error else None),
            samples=make_samples(26, size=size),
        ),
    ]
