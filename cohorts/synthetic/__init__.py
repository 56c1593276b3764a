"""The synthetic cohort: seeded H&E-like slides on disk with diagnostic trees, findings and tumour regions."""

from __future__ import annotations

from .build import cached_cohort, default_cohort, make_synthetic_cohort

__all__ = ["cached_cohort", "default_cohort", "make_synthetic_cohort"]
