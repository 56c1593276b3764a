"""An audit as tables, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ..tables import Block, Cell, Column, Table
from .checks.check import named
from .results import Audit, Checked, Guess
from .rules import RULES

__all__ = ["audit_tables", "audit_to_dict"]

FINDINGS_SHOWN = 10
"""Findings of a check that a terminal shows; JSON has all."""


def audit_tables(audit: Audit) -> list[Table]:
    """A table of each rule that guesses, one of the checks, and one of what they found."""
    rules = list(dict.fromkeys(guess.rule for guess in audit.guesses))
    tables = [_rule_table(rule, audit) for rule in rules]
    tables.append(_checks_table(audit))
    found = [each for each in audit.checks if each.findings]
    return [*tables, *(_findings_table(each) for each in found)]


def _rule_table(rule: str, audit: Audit) -> Table:
    says = {each.name: each.says for each in RULES} | {
        "true or false": "the truth value most often right elsewhere",
        "answer": "the question's words against the commonest answer, where only one is right, by a classifier",
    }
    guesses = [guess for guess in audit.guesses if guess.rule == rule]
    return Table(
        f"guess {rule}",
        f"{rule}: {says[rule]}",
        (Column("task", "task"),),
        (
            Block(
                "",
                (
                    Column("accuracy", "right, %", 1, 100),
                    Column("chance", "chance, %", 1, 100),
                    Column("n", "items"),
                    Column("units", "groups"),
                    Column("flag", "flag"),
                    Column("why", "left out"),
                ),
            ),
        ),
        tuple(_row(guess) for guess in guesses if guess.accuracy is not None),
        (f"[low, high]: {100 * audit.confidence:.6g} % exact interval.", *_not_tried(guesses)),
    )


def _not_tried(guesses: Sequence[Guess]) -> Iterator[str]:
    tasks: dict[str, list[str]] = {}
    for guess in guesses:
        if guess.accuracy is None:
            tasks.setdefault(guess.why, []).append(guess.task)
    for why, names in tasks.items():
        yield f"Not tried, as {why}: {', '.join(names)}."


def _row(guess: Guess) -> dict[str, Cell]:
    accuracy = guess.accuracy
    return {
        "task": guess.task,
        "accuracy": accuracy,
        "chance": guess.chance,
        "n": None if accuracy is None else accuracy.n,
        "units": None if accuracy is None else accuracy.units,
        "flag": "FLAG" if guess.flagged else "",
        "why": guess.why,
    }


def _checks_table(audit: Audit) -> Table:
    columns = (
        Column("looked", "looked at"),
        Column("found", "found"),
        Column("flag", "flag"),
    )
    rows: list[dict[str, Cell]] = [
        {
            "check": each.check,
            "looked": f"{each.looked:,} {each.things}",
            "found": len(each.findings),
            "flag": "FLAG" if each.findings else "",
        }
        for each in audit.checks
    ]
    notes = tuple(
        f"Not looked at ({each.check}): {line}"
        for each in audit.checks
        for line in [*each.not_looked[:FINDINGS_SHOWN], *_more(len(each.not_looked))]
    )
    return Table("checks", "Checks", (Column("check", "check"),), (Block("", columns),), tuple(rows), notes)


def _findings_table(checked: Checked) -> Table:
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"task": each.task, "what": each.what, "items": named(each.items)} for each in checked.findings[:FINDINGS_SHOWN]
    )
    columns = (Column("what", "what"), Column("items", "items"))
    notes = tuple(_more(len(checked.findings)))
    return Table(checked.check, checked.check, (Column("task", "in"),), (Block("", columns),), rows, notes)


def _more(count: int) -> list[str]:
    return [f"{count - FINDINGS_SHOWN:,} more; --json has all."] if count > FINDINGS_SHOWN else []


def audit_to_dict(audit: Audit) -> dict[str, Any]:
    """JSON-ready, with every finding and every item of it; what is missing is null."""
    return {
        "cohort": audit.cohort,
        "flagged": audit.flagged,
        "confidence": audit.confidence,
        "guesses": [asdict(guess) for guess in audit.guesses],
        "checks": [asdict(each) | {"flagged": bool(each.findings)} for each in audit.checks],
    }
