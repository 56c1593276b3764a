"""Rules that answer without looking at the evidence, in one table. A rule is one small file."""

from __future__ import annotations

from .lengths import LONGEST, SHORTEST
from .nearest import NEAREST
from .negation import NEGATION
from .position import POSITION
from .prior import PRIOR
from .question import QUESTION
from .rule import Rule
from .wording import WORDING

__all__ = ["PRIOR", "RULES", "Rule"]

RULES: tuple[Rule, ...] = (LONGEST, SHORTEST, NEGATION, NEAREST, POSITION, PRIOR, QUESTION, WORDING)
