"""Errors that a user can do something about, and their exit codes."""

import errno


USAGE, FAILED, NO_SPACE = 2, 1, 3
# By name, since importing the modules that define them would import JAX.
CODES = {
    "ConfigError": USAGE,
    "UnknownNameError": USAGE,
    "DataError": FAILED,
    "CheckpointError": FAILED,
    "LaunchError": FAILED,
    "PeerError": FAILED,
    "TrainingFailed": FAILED,
    "ReportError": FAILED,
    "StudyFailed": FAILED,
    "SweepFailed": FAILED,
}


def explain(error: Exception) -> tuple[int | None, str]:
    """The exit code and the message. An error that is a bug of ours has no exit code."""
    for kind in type(error).__mro__:
        if kind.__name__ in CODES and kind.__module__.startswith("taynode."):
            return CODES[kind.__name__], str(error)
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            return NO_SPACE, f"the disk is full ({error.filename}). Saved files are intact."
        if error.filename is not None:
            return NO_SPACE, f"cannot use {error.filename}: {error.strerror}."
    return None, str(error)
