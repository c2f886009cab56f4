"""Settings of every test: double precision, no silent promotion, run-time types.

The jaxtyping and beartype hook is installed by an option in `pyproject.toml`, before this file is
imported.
"""

import os


# Tests count evaluations and compare digits. JAX reads this when it is imported.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Compiling takes most of the time; the programs are tiny, so optimizing them gains nothing.
os.environ["XLA_FLAGS"] = " ".join(
    [
        *os.environ.get("XLA_FLAGS", "").split(),
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
    ]
)

import hypothesis
import jax


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
# The persistent cache, in case the environment turns it on: a test compiles what it tests.
jax.config.update("jax_enable_compilation_cache", False)

# The first call of a function compiles it, so a deadline would measure the compiler.
hypothesis.settings.register_profile("taynode", deadline=None)
hypothesis.settings.register_profile("taynode-ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("taynode-ci" if os.environ.get("CI") else "taynode")
