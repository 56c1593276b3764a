"""Patients, cases, slides and sets that are in two splits: what was learned of them is no test."""

from __future__ import annotations

from collections.abc import Iterator

from wsigym.cohorts import EvidenceItem

from ..results import Checked, Finding
from .check import Audited

__all__ = ["split_groups"]


def split_groups(audited: Audited) -> Checked:
    """Groups whose items of one suite are in several splits; also the slides that items show, and their patients."""
    findings, looked, unsplit = [], 0, 0
    for suite, asked in audited.suites().items():
        seen: dict[tuple[str, str], dict[str, list[str]]] = {}
        for item in (each.item for each in asked):
            if item.split is None:
                unsplit += 1
                continue
            for group in set(_groups(audited, item)):
                seen.setdefault(group, {}).setdefault(item.split, []).append(item.item_id)
        looked += len(seen)
        for (kind, name), splits in sorted(seen.items()):
            if len(splits) > 1:
                told = " and ".join(f"{split} ({len(items):,} items)" for split, items in sorted(splits.items()))
                items = tuple(item for listed in splits.values() for item in listed)
                findings.append(Finding(suite, items, f"{kind} {name} is in {told}"))
    not_looked = [f"{unsplit:,} items without a split"] if unsplit else []
    return Checked("groups in two splits", looked, "groups", tuple(findings), tuple(not_looked))


def _groups(audited: Audited, item: EvidenceItem) -> Iterator[tuple[str, str]]:
    for kind, name in item.group.items():
        if kind != "source":
            yield kind, name
    if item.set_id is not None:
        yield "set", item.set_id
    for image in item.images:
        for part in image.parts:
            if part.slide_id is not None:
                yield "slide", part.slide_id
                patient = audited.cohort.slide(part.slide_id).patient_id
                if patient is not None:
                    yield "patient", patient
