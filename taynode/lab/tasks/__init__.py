"""Data, model, loss and settings of each experiment."""
