# %% [markdown]
# # Advice
#
# Is my solver a good choice, is my tolerance tight enough, and what would make the model cheap? `tn.advise` measures it on some samples, against a nearly exact solution.

# %%
import diffrax as dfx
import jax.numpy as jnp
import jax.random as jr

import taynode as tn


def field(t, y, args):
    """A predator, its prey, and a season."""
    x, z = y
    return jnp.stack([x * (1.1 - 0.4 * z), z * (0.1 * x - 0.4)]) * (1 + 0.3 * jnp.sin(t))


starts = 5.0 + jr.uniform(jr.key(0), (16, 2)) * 5.0

# %% [markdown]
# `present=` is the setting in use. It is audited: what it costs, and how far it is from the exact solution.

# %%
advice = tn.advise(
    field,
    starts,
    0.0,
    10.0,
    rtol=1e-3,
    atol=1e-3,
    present=tn.models.Solve(dfx.Dopri8(), dfx.PIDController(rtol=1e-6, atol=1e-6)),
    solvers=[dfx.Bosh3(), dfx.Tsit5(), dfx.Dopri5()],
)
print(advice)

# %% [markdown]
# Errors are true ones, in units of the accuracy that was asked for: below 1 is accurate enough. A tolerance bounds the error of a step and not that of the end, so the tolerance that suffices differs between solvers.

# %%
advice.plot()

# %% [markdown]
# The star is the recommended setting, the cross the one in use. The recommendation can be used as it is:

# %%
sol = advice.solve(field, starts[0], t1=10.0)
print(sol.ys[-1], int(sol.stats["nfe"]))

# %% [markdown]
# The last sentence of the advice says which R_K to penalize: that order whose value goes along with the evaluations over the samples. For a learned field, [ease](ease.md) is next; for a run of `taynode train`, `taynode advise RUN` does all of this.
