"""Policies without a language model. They see only what an agent sees; the oracle alone reads the reference."""

from .registry import POLICIES, PolicyCard, make_policy

__all__ = ["POLICIES", "PolicyCard", "make_policy"]
