"""A diffrax solve with its evaluations counted: problem, control, first step, failures."""
