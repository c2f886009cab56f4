"""Training is compiled once for all of these tests."""

from tests.compiled_once import compiled_once as compiled_once
