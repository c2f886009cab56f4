"""What is released: versions that agree, and a wheel that works in environments of its own."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import taynode as tn

from .test_install import PROJECT, USE


ROOT = Path(__file__).parents[1]
# Types as a user has them: lazy names, keywords, and errors where they are due.
TYPED = """
import diffrax as dfx
import jax.numpy as jnp
import taynode as tn
from taynode.models import Solve

sol: dfx.Solution = tn.diffeqsolve(
    dfx.ODETerm(lambda t, y, args: -y), dfx.Dopri5(), 0.0, 1.0, 0.1, jnp.ones(2),
    regularizer=tn.TotalDerivative(order=3),
)
weight: tn.Budget = tn.Budget(nfe=40)
solve: Solve = tn.models.Solve(num_steps=4)
solver: dfx.AbstractSolver = tn.solvers.RK4()
"""
MISTAKES = """
import taynode as tn

tn.TotalDerivative(degree=3)
tn.Sampeld()
"""


def test_versions_agree():
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert citation is not None
    newest = re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert {PROJECT["version"], citation[1], newest[1]} == {tn.__version__}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, from a copy of what is released."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(out)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    (file,) = out.glob("*.whl")
    return file


@pytest.mark.slow
def test_the_wheel_has_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    info = f"taynode-{tn.__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"taynode", info}
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"} <= set(names)
    assert {"taynode/py.typed", "taynode/__init__.pyi"} <= set(names)
    assert not any("__pycache__" in name for name in names)
    assert wheel.stat().st_size < 1_000_000


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """Runs programs in a new environment with the wheel, outside of the clone."""
    place = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    environment = {name: x for name, x in os.environ.items() if name != "PYTHONPATH"}
    # As for users; the tests compile in another way.
    environment |= {"XLA_FLAGS": "", "CI": ""}

    def run(*words):
        return subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True)

    python = str(place / "venv" / "bin" / "python")
    pip = python, "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")
    done = run(*pip, str(wheel))
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        pytest.skip("The test of `pip install` needs a package index, and none can be reached.")
    assert done.returncode == 0, done.stderr
    return place, python, run


@pytest.mark.slow
def test_pip_install_brings_the_library_alone(fresh):
    place, python, run = fresh
    installed = json.loads(run(python, "-m", "pip", "list", "--format", "json").stdout)
    names = {canonicalize_name(package["name"]) for package in installed}
    assert "taynode" in names
    extras = PROJECT["optional-dependencies"]
    lab = {Requirement(line).name for key in extras.keys() - {"all"} for line in extras[key]}
    assert not names & set(map(canonicalize_name, lab))

    done = run(python, "-c", USE)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(place)


@pytest.mark.slow
def test_the_ten_lines_run_from_the_wheel(fresh):
    _, python, run = fresh
    done = run(python, str(ROOT / "tests" / "ten_lines.py"))
    assert done.returncode == 0, done.stderr
    # By itself, the import loads nothing of JAX.
    code = "import sys, taynode; print(taynode.__version__, 'jax' in sys.modules)"
    assert run(python, "-c", code).stdout.split() == [tn.__version__, "False"]


@pytest.mark.slow
def test_without_the_lab_the_command_says_what_to_install(fresh):
    place, _, run = fresh
    done = run(str(place / "venv" / "bin" / "taynode"), "--version")
    assert done.returncode != 0
    assert "taynode[all]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_types_reach_a_user_of_the_wheel(fresh):
    place, python, run = fresh
    project = place / "user"
    project.mkdir()
    (project / "good.py").write_text(TYPED)
    (project / "bad.py").write_text(MISTAKES)
    (project / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", python, "--project", str(project)]
    done = run(*pyright)
    errors = [line for line in done.stdout.splitlines() if " - error: " in line]
    assert all("bad.py" in line for line in errors), done.stdout
    text = "\n".join(errors)
    assert "degree" in text
    assert "Sampeld" in text
