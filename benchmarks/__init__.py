"""Costs, measured and counted. Run all of them with `make bench`."""
