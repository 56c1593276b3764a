"""What an audit looks for beside rules that guess, in one table. A check is one small file."""

from __future__ import annotations

from .answers import hidden_answers
from .check import Audited, Check
from .groups import split_groups
from .images import corpus_images, same_images
from .texts import same_items

__all__ = ["CHECKS", "Audited", "Check"]

CHECKS: tuple[Check, ...] = (split_groups, same_items, same_images, corpus_images, hidden_answers)
