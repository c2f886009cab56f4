"""Sweeps of many runs, which are executed in parallel, resumed, and collected in a table."""
