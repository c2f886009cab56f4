"""What tests of the lab share."""

import pytest

from .rows import without_penalties


@pytest.fixture
def no_penalties():
    """See `without_penalties`."""
    with without_penalties():
        yield
