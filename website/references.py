"""Names in code become links: those of taynode to its API reference, others to their own sites."""

import re
from typing import Any


DOCS = "https://docs.kidger.site"
# The pages of other libraries on which their names are explained.
ELSEWHERE = {
    f"{DOCS}/diffrax/api/diffeqsolve/": "diffrax.diffeqsolve",
    f"{DOCS}/diffrax/api/solution/": "diffrax.Solution diffrax.RESULTS",
    f"{DOCS}/diffrax/api/terms/": "diffrax.ODETerm diffrax.ControlTerm diffrax.MultiTerm",
    f"{DOCS}/diffrax/api/saveat/": "diffrax.SaveAt diffrax.SubSaveAt",
    f"{DOCS}/diffrax/api/events/": "diffrax.Event",
    f"{DOCS}/diffrax/api/adjoints/": (
        "diffrax.RecursiveCheckpointAdjoint diffrax.BacksolveAdjoint diffrax.DirectAdjoint"
        " diffrax.ForwardMode diffrax.ImplicitAdjoint"
    ),
    f"{DOCS}/diffrax/api/stepsize_controller/": (
        "diffrax.PIDController diffrax.ConstantStepSize diffrax.StepTo"
        " diffrax.ClipStepSizeController"
    ),
    f"{DOCS}/diffrax/api/solvers/ode_solvers/": (
        "diffrax.Euler diffrax.Heun diffrax.Midpoint diffrax.Ralston diffrax.Bosh3 diffrax.Tsit5"
        " diffrax.Dopri5 diffrax.Dopri8 diffrax.Kvaerno3 diffrax.Kvaerno5"
    ),
    f"{DOCS}/diffrax/api/interpolation/": (
        "diffrax.LinearInterpolation diffrax.CubicInterpolation"
        " diffrax.backward_hermite_coefficients"
    ),
    f"{DOCS}/diffrax/api/brownian/": "diffrax.VirtualBrownianTree diffrax.UnsafeBrownianPath",
    f"{DOCS}/equinox/api/module/module/": "equinox.Module",
    f"{DOCS}/equinox/api/nn/mlp/": "equinox.nn.MLP",
}
SHORT = {"tn.": "taynode.", "dfx.": "diffrax.", "eqx.": "equinox.", "lab.": "taynode.lab."}
# Code that is a name, perhaps with arguments, and is neither in a link nor in a heading.
NAME = re.compile(
    r"(?P<skip><a\b.*?</a>|<h[1-6].*?</h[1-6]>|<pre.*?</pre>|<div class=\"doc doc-object.*?</h\d>)"
    r"|<code>(?P<name>(?:tn|taynode|dfx|diffrax|eqx|equinox|lab)(?:\.\w+)+)(?P<rest>\(.*?\))?</code>",
    re.S,
)


def register(autorefs: Any) -> None:
    """Tell mkdocs-autorefs where the names of other libraries are explained."""
    for page, names in ELSEWHERE.items():
        for name in names.split():
            autorefs.register_url(name, f"{page}#{name}")


def linked(page: str) -> str:
    """Make names in the code of a page references, which autorefs resolves if it knows them."""

    def replace(match: re.Match[str]) -> str:
        if match["skip"]:
            return match[0]
        name = match["name"]
        for short, long in SHORT.items():
            if name.startswith(short):
                name = long + name.removeprefix(short)
        return f'<autoref identifier="{name}" optional>{match[0]}</autoref>'

    return NAME.sub(replace, page)
