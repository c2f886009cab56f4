"""All code of the site, and whether the API reference is complete."""

import ast
import re
import tomllib
from pathlib import Path

import jax
import pytest

from taynode.lab.cli import app
from website.blocks import blocks, execute, run


ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
# The README has a test of its own.
WITH_CODE = [page for page in PAGES[:-1] if blocks(page.read_text())]
# Those that take a second or two; the others are executed by the long tests.
QUICK = {"how-it-works.md", "extending.md", "taylor.md"}
name_of = lambda page: str(page.relative_to(ROOT))


@pytest.fixture(autouse=True)
def as_for_users(monkeypatch):
    """In single precision, as JAX is by default, and with its promotion of dtypes."""
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page.name in QUICK else pytest.mark.slow, id=name_of(page))
        for page in WITH_CODE
    ],
)
def test_the_code_of_a_page_runs(page):
    run(page.read_text(), str(page))


def public_names(package):
    """The names that a package imports as themselves: `from .x import Y as Y`."""
    folder = ROOT.joinpath(*package.split("."))
    file = next(file for file in (folder / "__init__.pyi", folder / "__init__.py") if file.exists())
    names = [
        alias
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    return {f"{package}.{alias.name}" for alias in names if alias.name == alias.asname}


PACKAGES = ("taynode", "taynode.models", "taynode.solvers", "taynode.weights", "taynode.lab")


def test_every_public_name_is_in_the_reference():
    public = set().union(*map(public_names, PACKAGES)) | {"taynode.compat.odeint"}
    # Packages are pages of their own; two weights have shorter names.
    public -= {"taynode.models", "taynode.solvers", "taynode.weights", "taynode.compat"}
    public -= {"taynode.weights.Budget", "taynode.weights.LossBudget"}
    reference = (ROOT / "docs" / "api").glob("*.md")
    found = [
        name for page in reference for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)
    ]
    assert len(found) == len(set(found))
    assert set(found) == public


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "api").glob("*.md")), ids=name_of)
def test_every_name_of_the_reference_has_an_example(page):
    text = page.read_text()
    code = "\n".join(block.code for block in blocks(text))
    missing = [
        name
        for name in re.findall(r"^::: \S*?(\w+)$", text, re.M)
        if not re.search(rf"\b{name}\b", code)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page_are_understood(page):
    """Names of commands and flags, and the types of their values."""
    lines = [line for block in blocks(page.read_text(), "sh") for line in block.code.splitlines()]
    for line in lines:
        command = line.partition(" #")[0].split()
        if command[:1] == ["taynode"] and command[1:] != ["--install-completion"]:
            app.parse_args(command[1:], exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_of_a_page_are_toml(page):
    for block in blocks(page.read_text(), "toml"):
        assert tomllib.loads(block.code)


# What the code in docstrings takes as given, and the numbers of steps to be patient for.
GIVEN = """
import functools
import diffrax
import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import taynode as tn

f = vector_field = lambda t, y, args: -0.5 * y
term, t0, t1, dt0, rtol, atol = dfx.ODETerm(f), 0.0, 1.0, 0.1, 1e-2, 1e-2
another_key = jax.random.key(1)
key, x, y0 = jax.random.key(0), jnp.arange(8.0).reshape(4, 2), jnp.ones(2)
y0s = states = target = x
times = jnp.linspace(0.0, 1.0, 4)
batches, valid, optimizer = [x, 2 * x], x, optax.adam(1e-3)
weight, loss = 0.1, 1.0
network, condition = (lambda x: x), x
solver, controller = dfx.Bosh3(), dfx.PIDController(rtol=1e-3, atol=1e-3)
solve = functools.partial(
    tn.diffeqsolve, term, dfx.Bosh3(), t0, t1, dt0, stepsize_controller=controller, key=key
)


model = jnp.array(0.5)
field = lambda t, y, rate: -rate * y


def predict(model, batch, key):
    sol = tn.diffeqsolve(
        dfx.ODETerm(field), dfx.Bosh3(), t0, t1, dt0, batch, model,
        stepsize_controller=controller,
        regularizer=tn.TotalDerivative(order=2), quadrature=tn.Augmented(),
    )
    return sol.ys, sol


def loss_fn(model, batch, key):
    ys, sol = predict(model, batch, key)
    return jnp.mean(ys**2), sol
"""
MORE = {
    "groups.py": "xs = x\nmodel = lambda x: 2 * x",
    "advice/search.py": "model = tn.models.TimeMLP((2, 4, 2), key=key)\n"
    "model = type('Model', (), {'vector_field': staticmethod(model)})\ny0 = y0s[0]",
    "models/matching.py": "flow = tn.models.ContinuousFlow("
    "tn.models.TimeMLP((2, 4, 2), key=key), (2,))",
    "weights/base.py": "weight = tn.Budget(nfe=10)\n"
    "step = lambda model, batch, weight: (model, 1.0, 1.0, 40)",
    "regularizers/expected_nfe.py": "y0 = x",
}


def docstrings():
    """The files of the library with code in docstrings."""
    for file in sorted((ROOT / "taynode").rglob("*.py")):
        if "lab" not in file.parts and "```python" in file.read_text():
            yield pytest.param(file, id=name_of(file))


@pytest.mark.slow
@pytest.mark.parametrize("file", [*docstrings()])
def test_the_code_of_docstrings_runs(file):
    for block in blocks(file.read_text()):
        names: dict = {}
        execute(GIVEN + MORE.get(str(file.relative_to(ROOT / "taynode")), ""), names)
        execute(
            block.code.replace("steps=1000", "steps=4").replace("10_000", "4"),
            names,
            str(file),
            block.line,
        )
