"""The error of data sets."""


class DataError(Exception):
    """A data set is unknown, missing, damaged or out of reach. The message says what to do."""
