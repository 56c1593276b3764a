"""What the labelled statements of R1 have to be, so that a model cannot tell them without the images.

    - four a case and level, exactly two of them true
    - a false one has a basis: an entity of the ontology, or a level of a grading group
    - one finding each: a single sentence
    - none names the entity, an accepted alternate, an option of the case's A2 item, a synonym of theirs (of four
      characters or more) or the site
    - true and false are alike in length (their means within 25 %) and in how many are negated
    - no true and false one mirror each other: the same words but for one, or for a negation
    - a span stands in the case's caption

Sources: CaseScope, supplement S6.10; the 25 % and the rule of mirrors are this project's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from wsigym.errors import Fault

from .cases import CASES, STATEMENTS, CaseLine, Sources, StatementLine, names_in
from .distractors import distractors
from .ontology import folded

__all__ = ["LENGTH_TOLERANCE", "STATEMENTS_A_LEVEL", "by_item", "statement_faults"]

STATEMENTS_A_LEVEL = 4

LENGTH_TOLERANCE = 0.25
"""How much shorter the mean of the true (or false) statements may be, as a share of the longer mean."""

SHORTEST_SYNONYM = 4
"""Shorter names, such as abbreviations, stand in too many words."""

_NEGATION = frozenset(
    ("no", "not", "without", "absent", "absence", "lack", "lacks", "lacking", "never", "neither", "nor")
)
_FUNCTION = frozenset(
    (
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "by",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "the",
        "there",
        "to",
        "with",
        "have",
    )
)
_SEVERAL = re.compile(r";|[.!?]\s+\S")

Numbered = tuple[int, StatementLine]


def by_item(statements: Sequence[Numbered]) -> dict[tuple[str, str | None], list[Numbered]]:
    """Statements by case and level, in order of appearance."""
    found: dict[tuple[str, str | None], list[Numbered]] = {}
    for line, statement in statements:
        found.setdefault((statement.case_id, statement.level), []).append((line, statement))
    return found


def statement_faults(sources: Sources, seed: int) -> Iterator[Fault]:
    """Every fault of the statements, beside the options that `seed` draws for A2."""
    cases = {case.case_id: case for _, case in sources.cases}
    forbidden: dict[str, Mapping[str, str]] = {}
    for (case_id, level), statements in by_item(sources.statements).items():
        case = cases.get(case_id)
        if case is None:
            for line, _ in statements:
                yield Fault(STATEMENTS, line, "case_id", f"no case {case_id!r} in {CASES}")
            continue
        if case_id not in forbidden:
            forbidden[case_id] = _forbidden(sources, case, seed)
        for line, statement in statements:
            yield from _alone(sources, case, line, statement, forbidden[case_id])
        yield from _together(level, statements)


def _forbidden(sources: Sources, case: CaseLine, seed: int) -> Mapping[str, str]:
    """What no statement of the case may name, folded -> as written."""
    options = [one.entity for one in distractors(sources, case, seed) or ()]
    entities = [case.entity, *case.alternates, *options]
    names = [name for entity in entities for name in sources.ontology.names(entity)]
    long = {folded(name): name for name in names if len(name) >= SHORTEST_SYNONYM}
    return long if case.site is None else {**long, folded(case.site): case.site}


def _alone(
    sources: Sources, case: CaseLine, line: int, statement: StatementLine, forbidden: Mapping[str, str]
) -> Iterator[Fault]:
    named = names_in(statement.statement, forbidden)
    if named:
        yield Fault(STATEMENTS, line, "statement", f"names {', '.join(map(repr, named))}, an answer or the site")
    if _SEVERAL.search(statement.statement):
        yield Fault(
            STATEMENTS, line, "statement", f"is more than one sentence; one finding each: {statement.statement!r}"
        )
    if statement.span is not None and statement.span not in (case.caption or ""):
        yield Fault(STATEMENTS, line, "span", f"{statement.span!r} does not stand in the caption of {case.case_id!r}")
    if statement.true:
        return
    levels = {level for group in sources.ontology.gradings.values() for level in group.levels}
    if statement.basis is None:
        if statement.span is None:
            yield Fault(STATEMENTS, line, "basis", "is missing; a false statement fits an entity or a grading level")
    elif statement.basis not in sources.ontology.entities and statement.basis not in levels:
        yield Fault(STATEMENTS, line, "basis", f"{statement.basis!r} is no entity and no level of a grading group")


def _together(level: str | None, statements: Sequence[Numbered]) -> Iterator[Fault]:
    line = statements[0][0]
    true, false = ([each for each in statements if each[1].true is truth] for truth in (True, False))
    where = "the case" if level is None else f"{level} power"
    if (len(true), len(false)) != (2, 2):
        message = f"{where} has {len(true)} true and {len(false)} false statements; two and two are needed"
        yield Fault(STATEMENTS, line, "true", message)
        return
    lengths = [fmean(len(each.statement) for _, each in side) for side in (true, false)]
    if min(lengths) < (1 - LENGTH_TOLERANCE) * max(lengths):
        message = (
            f"the true ones of {where} have {lengths[0]:.0f} characters, the false ones {lengths[1]:.0f} on average; "
            f"they may differ by {LENGTH_TOLERANCE:.0%}"
        )
        yield Fault(STATEMENTS, line, "statement", message)
    negated = [sum(_is_negated(each.statement) for _, each in side) for side in (true, false)]
    if negated[0] != negated[1]:
        message = f"of the true ones of {where} {negated[0]} are negated, of the false ones {negated[1]}; need as many"
        yield Fault(STATEMENTS, line, "statement", message)
    for _, one in true:
        for at, other in false:
            if _mirrors(one.statement, other.statement):
                message = f"{other.statement!r} mirrors the true {one.statement!r}"
                yield Fault(STATEMENTS, at, "statement", message)


def _is_negated(statement: str) -> bool:
    return not _NEGATION.isdisjoint(folded(statement).split())


def _mirrors(one: str, other: str) -> bool:
    """Whether two statements have the same words of meaning but for at most one each, negations aside."""
    first, second = (set(folded(text).split()) - _NEGATION - _FUNCTION for text in (one, other))
    common = first & second
    return len(first - common) <= 1 and len(second - common) <= 1 and len(common) >= 2
