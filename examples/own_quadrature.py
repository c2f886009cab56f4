"""A quadrature of one's own: Gauss-Legendre nodes over the interval, the same in every solve.

It saves the state at the nodes besides what the user saves, and evaluates the rate there. The
penalty is not random, and costs a fixed number of evaluations; it needs a solve that is not ended
early by an event. Run it with `python examples/own_quadrature.py`: a few seconds.
"""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import taynode as tn


class GaussLegendre(tn.AbstractQuadrature):
    points: int = eqx.field(static=True, default=5)

    def solve(self, problem, regularizer, key):
        nodes, weights = np.polynomial.legendre.leggauss(self.points)
        times = jnp.asarray(problem.t0 + (problem.t1 - problem.t0) * (nodes + 1) / 2)
        save = lambda s: s.subs
        subs = problem.saveat.subs, dfx.SubSaveAt(ts=times)
        saveat = eqx.tree_at(save, problem.saveat, subs, is_leaf=lambda x: x is None)
        solution = tn.integrate(problem.replace(saveat=saveat))
        ts, ys, states = solution.ts[0], solution.ys[0], solution.ys[1]

        drawn = regularizer.init(problem.y0, problem.args, key=key)
        rate_at = lambda t, y: regularizer.rate(problem.slope_term.vf, t, y, problem.args, drawn)[1]
        rates = jax.vmap(rate_at)(times, states)
        length = jnp.abs(problem.t1 - problem.t0)
        integral = jax.tree.map(lambda r: length * jnp.tensordot(weights / 2, r, axes=1), rates)

        solution = eqx.tree_at(lambda s: (s.ts, s.ys), solution, (ts, ys))  # as the user saved
        return tn.Penalized(solution, integral, evaluations=self.points)


def pendulum(t, y, args):
    return jnp.stack([y[1], -jnp.sin(y[0])])


def main():
    for quadrature in (GaussLegendre(), tn.Augmented()):
        sol = tn.diffeqsolve(
            dfx.ODETerm(pendulum),
            dfx.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=None,
            y0=jnp.array([1.0, 0.0]),
            stepsize_controller=dfx.PIDController(rtol=1e-6, atol=1e-6),
            regularizer=tn.TotalDerivative(order=2),
            quadrature=quadrature,
        )
        print(f"{type(quadrature).__name__:14} {sol.stats['penalty']:.6f}")


if __name__ == "__main__":
    main()
