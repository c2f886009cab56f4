"""Names of values in the body of the loop over steps.

The reverse pass finds these values in the jaxpr of the body by their names, see
`jax.ad_checkpoint.checkpoint_name`.
"""

# The decision about a step, and where it ends. They are known at an accepted step.
KEEP_STEP = "taynode.adjoint.keep_step"
NEXT_T0 = "taynode.adjoint.next_t0"

# Values of the vector field. The first one of a step is the last one of the step before, which the
# solver keeps. The reverse pass may evaluate it again instead, in order to store less.
SLOPE = "taynode.adjoint.slope"
KEPT_SLOPE = "taynode.adjoint.kept_slope"
FIRST_SLOPE = "taynode.adjoint.first_slope"
