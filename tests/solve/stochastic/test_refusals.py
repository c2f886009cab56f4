"""What is undefined, and what is defined all the same."""

import diffrax as dfx
import jax
import pytest

import taynode as tn
from tests.integration.problems import KEY

from .equations import additive, decay, PATH, sde, SLOPES, solve


UNSAFE = dfx.UnsafeBrownianPath((2,), KEY)
REFUSED = {
    "no drift": (
        dict(terms=dfx.ControlTerm(additive, PATH), regularizer=tn.TotalDerivative(2)),
        r"`VirtualBrownianTree` drives has none.*MultiTerm.*DiffusionNorm.*ErrorEstimate",
    ),
    "to_ode": (
        dict(terms=dfx.ControlTerm(additive, PATH).to_ode(), regularizer=tn.KineticEnergy()),
        r"`VirtualBrownianTree` drives has none.*MultiTerm",
    ),
    "ExpectedNFE": (
        dict(regularizer=tn.ExpectedNFE(dfx.Dopri5(), 1e-3, 1e-3)),
        r"`ExpectedNFE` is not defined for stochastic equations.*ErrorEstimate",
    ),
    "Stiffness": (
        dict(regularizer=tn.Stiffness(1e-3, 1e-3), quadrature=tn.AcceptedSteps()),
        r"`Stiffness` is not defined for stochastic equations.*ErrorEstimate",
    ),
    "tuple": (
        dict(terms=(dfx.ODETerm(decay), dfx.ODETerm(decay)), regularizer=tn.KineticEnergy()),
        r"got `tuple`.*as one `ODETerm`",
    ),
    "another path": (
        dict(
            terms=sde(additive, UNSAFE),
            solver=dfx.Heun(),
            regularizer=tn.ErrorEstimate(1e-3, 1e-3),
            adjoint=dfx.ForwardMode(),
        ),
        r"`UnsafeBrownianPath` draws another one; use `diffrax\.VirtualBrownianTree`",
    ),
    "no noise": (
        dict(terms=dfx.ODETerm(decay), solver=dfx.Heun(), regularizer=tn.DiffusionNorm()),
        r"`DiffusionNorm` needs a stochastic equation",
    ),
    "no estimate": (
        dict(
            solver=dfx.GeneralShARK(),
            regularizer=tn.ErrorEstimate(1e-3, 1e-3),
            quadrature=tn.AcceptedSteps(),
        ),
        r"`GeneralShARK` has none; use a solver",
    ),
    "Backward": (
        dict(regularizer=tn.KineticEnergy(), quadrature=tn.Backward()),
        r"`quadrature=Backward\(\)`.*got a `MultiTerm`.*`Sampled\(\)`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_undefined_is_refused_with_an_alternative(name):
    options, message = REFUSED[name]
    options = {"solver": dfx.ShARK(), "quadrature": tn.Sampled(), "dt0": 1 / 8} | options
    with pytest.raises((TypeError, ValueError), match=message):
        solve(additive, **options)


@pytest.mark.slow
def test_steps_of_a_path_that_cannot_be_repeated():
    """Slopes and steps need nothing but the solve itself."""
    options = dict(terms=sde(additive, UNSAFE), adjoint=dfx.ForwardMode(), dt0=1 / 8)
    error = tn.ErrorEstimate(1e-3, 1e-3)
    for regularizer, quadrature in ((SLOPES, tn.Sampled()), (error, tn.AcceptedSteps())):
        sol = solve(None, dfx.Heun(), regularizer, quadrature, **options)
        assert all(x > 0 for x in jax.tree.leaves(sol.stats["penalty"]))
