"""Programs that many tests have in common are compiled by the first of them."""

import os

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory):
    """Training compiles the same evaluations and steps again in each run.

    Imported into the `conftest.py` of the tests that do so; also holds for processes they start.
    """
    base = tmp_path_factory.getbasetemp()
    # One folder for all processes of a test run.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "compiled"
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_enable_compilation_cache": True,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            jax.config.update(name, value)
            patch.setenv(name.upper(), str(value).lower() if value is True else str(value))
        compilation_cache.reset_cache()
        yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
