"""Can the items of a cohort be answered without looking? Rules that guess, duplicates, and answers that stand about."""

from __future__ import annotations

from .auditing import audit
from .results import Audit, Checked, Finding, Guess

__all__ = ["Audit", "Checked", "Finding", "Guess", "audit"]
