"""Training: one loop, checkpoints, records."""
