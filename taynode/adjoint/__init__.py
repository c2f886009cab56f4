"""Adjoints: ways to differentiate a solve."""

from .accepted_steps import AcceptedStepAdjoint as AcceptedStepAdjoint
