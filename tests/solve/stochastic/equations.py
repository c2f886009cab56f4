"""Stochastic equations on fixed Brownian paths, with closed forms."""

import diffrax as dfx
import jax.numpy as jnp
import jax.random as jr
import lineax as lx
import numpy as np

import taynode as tn
from tests.integration.problems import KEY


# One realization for all tests.
PATH = dfx.VirtualBrownianTree(0.0, 1.0, 2.0**-14, (2,), jr.key(3), levy_area=dfx.SpaceTimeLevyArea)
Y0 = np.array([1.2, -0.7])
PARAMETERS = {"rate": 1.5, "noise": 0.4}
GRID = np.linspace(0.0, 1.0, 2**12 + 1)
FIXED = dfx.ConstantStepSize()


def decay(t, y, args):
    return -args["rate"] * y


def additive(t, y, args):
    return lx.DiagonalLinearOperator(args["noise"] * jnp.ones(2))


def multiplicative(t, y, args):
    return lx.DiagonalLinearOperator(args["noise"] * y)


def sde(diffusion, path=PATH):
    return dfx.MultiTerm(dfx.ODETerm(decay), dfx.ControlTerm(diffusion, path))


def solve(diffusion, solver, regularizer=None, quadrature=None, args=None, *, lib=tn, **options):
    options = {"stepsize_controller": FIXED, "max_steps": 4096, "y0": jnp.asarray(Y0)} | options
    terms = options.pop("terms", None) or sde(diffusion)
    if regularizer is not None:
        options |= dict(regularizer=regularizer, quadrature=quadrature)
        options.setdefault("key", KEY)
    y0, dt0 = options.pop("y0"), options.pop("dt0", 1 / 256)
    return lib.diffeqsolve(
        terms, solver, 0.0, 1.0, dt0, y0, PARAMETERS if args is None else args, **options
    )


def ornstein_uhlenbeck(motion):
    """Integration by parts takes the noise out of the integral."""
    rate, noise = PARAMETERS["rate"], PARAMETERS["noise"]
    slope = np.exp(rate * GRID)[:, None] * motion
    areas = np.cumsum((slope[1:] + slope[:-1]) / 2, axis=0) * (GRID[1] - GRID[0])
    past = np.exp(-rate * GRID)[:, None] * np.concatenate([np.zeros((1, 2)), areas])
    return np.exp(-rate * GRID)[:, None] * Y0 + noise * (motion - rate * past)


def geometric(motion):
    """Of the Stratonovich equation."""
    rate, noise = PARAMETERS["rate"], PARAMETERS["noise"]
    return Y0 * np.exp(-rate * GRID[:, None] + noise * motion)


CASES = {
    "additive": (additive, dfx.ShARK(), ornstein_uhlenbeck),
    "Heun": (multiplicative, dfx.Heun(), geometric),
    "SPaRK": (multiplicative, dfx.SPaRK(), geometric),
}
SLOPES = {"K": tn.KineticEnergy(), "R_2": tn.TotalDerivative(2), "noise": tn.DiffusionNorm()}


class Here(tn.AbstractRegularizer):
    """Its rate is the point of the path."""

    def rate(self, vector_field, t, y, args, state):
        return vector_field(t, y, args), (t, y)
