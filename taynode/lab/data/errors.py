"""What is raised when data cannot be had."""


class DataError(Exception):
    """A data set is unknown, missing, damaged or out of reach. The message says what to do."""
