"""The library works with its declared dependencies alone, without those of the lab."""

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Every public name, and a regularized solve.
USE = """
import diffrax as dfx
import jax.numpy as jnp
import taynode as tn

for name in dir(tn):
    getattr(tn, name)
for module in (tn.models, tn.solvers):
    for name in dir(module):
        getattr(module, name)
solution = tn.diffeqsolve(
    dfx.ODETerm(lambda t, y, args: -y), dfx.Dopri5(), 0.0, 1.0, 0.1, jnp.ones(2),
    regularizer=tn.TotalDerivative(order=2), quadrature=tn.Augmented(),
)
# The integral of exp(-2 t), as the second derivative of the solution is the solution itself.
assert abs(solution.stats["penalty"] - (1 - jnp.exp(-2)) / 2) < 1e-4
print(tn.__file__)
"""

HIDE = """
import sys

class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"{{name}} is no dependency of the library", name=name)

sys.meta_path.insert(0, Hidden)
"""


def closure(requirements):
    """The distributions that `pip install` of some requirements brings."""
    found, todo = set(), list(requirements)
    while todo:
        requirement = Requirement(todo.pop())
        name = canonicalize_name(requirement.name)
        if name not in found and (not requirement.marker or requirement.marker.evaluate()):
            found.add(name)
            todo += [line for line in metadata.requires(name) or [] if "extra ==" not in line]
    return found


def test_the_library_needs_none_of_the_labs_dependencies(tmp_path):
    core = closure(PROJECT["dependencies"])
    hidden = {
        module
        for module, owners in metadata.packages_distributions().items()
        if module != "taynode" and not core & set(map(canonicalize_name, owners))
    }
    assert {"cyclopts", "rich", "matplotlib", "plotly", "jinja2", "pooch", "optax"} <= hidden
    code = HIDE.format(hidden=hidden) + USE
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(ROOT)


def test_a_solve_imports_no_solver_that_is_not_used():
    # All of them took a fifth of the time that the import of taynode adds to that of diffrax.
    code = "import sys, taynode; taynode.diffeqsolve, taynode.Budget; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "taynode.solve" in out.stdout.split()
    assert "taynode.solvers.owren_zennaro" not in out.stdout.split()
