"""Many runs: planned, executed side by side, resumed, and collected in one table."""
