"""Gymnasium environments, the policy protocol, and the test that every environment passes."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .budgets import RoiBudget as RoiBudget
    from .evidence import EvidenceEnv as EvidenceEnv
    from .localization import LocalizationEnv as LocalizationEnv
    from .policy import Policy as Policy

_WHERE = {"EvidenceEnv": "evidence", "LocalizationEnv": "localization", "Policy": "policy", "RoiBudget": "budgets"}

__all__ = ["EvidenceEnv", "LocalizationEnv", "Policy", "RoiBudget"]


def __getattr__(name: str) -> Any:
    # Lazy, so that `import wsigym`, which registers the ids, reads no slide library.
    if name in _WHERE:
        return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
