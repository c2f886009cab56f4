"""Training: configurations, one loop, checkpoints, records."""
