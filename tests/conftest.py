"""Settings of every test: double precision, no silent promotion, run-time types.

The jaxtyping and beartype hook is installed by an option in `pyproject.toml`, before this file is
imported.
"""

import gc
import os
import shutil
import tempfile
from pathlib import Path


# Tests count evaluations and compare digits. JAX reads this when it is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Compiling takes much of the time. The programs are tiny, so optimizing them gains nothing, and
# XLA's older emitter of elementwise code and a single unit of code halve the time to compile them.
# With `XLA_FLAGS=` the tests are compiled as users' programs are.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
# Each operation of a program would carry the whole stack of whoever wrote it. JAX also shortens the
# stack of each exception, and equinox catches many.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "1")
os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")

import hypothesis
import jax

from tests.lab.report.chromium import chromium as chromium
from tests.skips import pytest_terminal_summary as pytest_terminal_summary


# What one test has compiled serves the others: in this process, in the workers, and in commands
# that are called. The directory is new each time, so nothing is left of an earlier state. Programs
# of a single operation are the most frequent ones: compiling one takes four times as long as
# reading it, and writing it takes next to nothing.
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if not IS_WORKER:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="taynode-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
CACHE = os.environ["JAX_COMPILATION_CACHE_DIR"]
jax.config.update("jax_compilation_cache_dir", CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")

# The first call of a function compiles it, so a deadline would measure the compiler.
hypothesis.settings.register_profile("taynode", deadline=None)
hypothesis.settings.register_profile("taynode-ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("taynode-ci" if os.environ.get("CI") else "taynode")


# Each compiled program takes some of the memory maps that Linux gives to a process, 65,530 of them
# by default. XLA crashes when there are none left, after some hundreds of tests.
MAPS, MOST_MAPS, EVERY = Path("/proc/self/maps"), 45_000, 20
_finished = 0


def pytest_collection_finish():
    """Look for garbage less often: tracing makes millions of objects that are none."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure():
    """Remove what was compiled."""
    if not IS_WORKER:
        shutil.rmtree(CACHE, ignore_errors=True)


def pytest_runtest_teardown():
    """Forget compiled programs before there are too many of them."""
    global _finished
    _finished += 1
    if _finished % EVERY == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
