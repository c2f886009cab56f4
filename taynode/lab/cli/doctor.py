"""`taynode doctor`."""

import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ... import __version__
from .tables import JsonOutput, print_rows


PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "lineax", "numpy")
# What the extras bring, and what is missing without it.
EXTRAS = {
    "optax": "training",
    "matplotlib": "figures",
    "plotly": "the report page",
    "jinja2": "the report page",
    "pooch": "downloads",
    "requests": "downloads",
    "sklearn": "the task digits",
    "ray": "sweeps on Ray",
    "submitit": "sweeps on SLURM",
    "optuna": "searches",
}
MISSING = "not installed"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def doctor(*, json_output: JsonOutput = False) -> None:
    """Say what taynode finds on this machine, and whether a solve works: for bug reports.

    The exit code is 1 if a solve does not work.
    """
    checks = _packages(), _machine(), _data(), _browser(), _solve()
    rows = [row for check in checks for row in check]
    print_rows(
        [dict(zip(("what", "found", "note"), row, strict=True)) for row in rows],
        as_json=json_output,
    )
    if any(note == "broken" for *_, note in rows):
        sys.exit(1)


def _packages() -> Iterator[tuple[str, str, str]]:
    yield "python", platform.python_version(), sys.executable
    # What is imported here, which may be newer than what was installed.
    yield "taynode", __version__, str(Path(__file__).parents[2])
    for name in PACKAGES:
        yield name, _version(name), ""
    for name, use in EXTRAS.items():
        # Looked for and read about, since importing some of them takes seconds.
        is_here = importlib.util.find_spec(name) is not None
        found = _version({"sklearn": "scikit-learn"}.get(name, name)) if is_here else MISSING
        yield name, found, "" if is_here else f"needed for {use}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return MISSING


def _machine() -> Iterator[tuple[str, str, str]]:
    yield "system", platform.platform(), f"{os.cpu_count()} cores"
    jax = _attempt(lambda: importlib.import_module("jax"))
    if isinstance(jax, str):
        yield "devices", jax, "broken"
        return
    devices = _attempt(lambda: ", ".join(f"{d.platform} ({d.device_kind})" for d in jax.devices()))
    yield "devices", devices, f"JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS', '')}"
    double = jax.config.jax_enable_x64
    yield "precision", "float64" if double else "float32", "JAX_ENABLE_X64=1 for float64"
    yield "flags of XLA", os.environ.get("XLA_FLAGS", "none"), ""
    cache = jax.config.jax_compilation_cache_dir
    yield "cache of programs", str(cache or "none"), "JAX_COMPILATION_CACHE_DIR"


def _data() -> Iterator[tuple[str, str, str]]:
    from ..data.manage import list_data
    from ..data.store import cache_folder, VARIABLE

    yield "data", os.environ.get(VARIABLE, "none of your own"), f"{VARIABLE} names a folder"
    cache = _attempt(cache_folder)
    if isinstance(cache, Path):
        folder = next(p for p in (cache, *cache.parents) if p.exists())
        writable = "" if os.access(folder, os.W_OK) else "cannot be written"
        yield "cache of data", str(cache), writable
    found = _attempt(list_data)
    if isinstance(found, str):
        yield "data sets", found, ""
        return
    for status in found:
        yield f"data set {status.name}", status.where, ""


def _browser() -> Iterator[tuple[str, str, str]]:
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    yield "browser", found or "no Chromium on the path", "for tests of pages alone"


def _solve() -> Iterator[tuple[str, str, str]]:
    def solve() -> str:
        import diffrax as dfx
        import jax.numpy as jnp

        import taynode as tn

        start = time.perf_counter()
        sol = tn.diffeqsolve(
            dfx.ODETerm(lambda t, y, args: -y),
            dfx.Dopri5(),
            0.0,
            1.0,
            0.1,
            jnp.ones(2),
            regularizer=tn.TotalDerivative(order=2),
            quadrature=tn.Augmented(),
        )
        # The integral of exp(-2 t).
        penalty = float(sol.stats["penalty"])
        right = abs(penalty - 0.43233) < 1e-3
        answer = "right" if right else f"wrong: {penalty} instead of 0.43233"
        return f"{answer}, {time.perf_counter() - start:.1f} s with compiling"

    answer = _attempt(solve)
    yield "a regularized solve", answer, "" if answer.startswith("right") else "broken"


def _attempt(look: Callable[[], Any]) -> Any:
    """What a check finds, or its error in a line: one that fails must not hide the others."""
    try:
        return look()
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n")[0]
