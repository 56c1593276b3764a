"""The fourteen tasks in one table: a new one is a rule and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import region_rules as region
from . import slide_rules as slide
from .field import Field
from .questions import Asking, Question

__all__ = ["SUITE", "TASKS", "TaskRule"]

SUITE = "pathview"

Rule = Callable[[Field, Asking, str], Question]
"""From a field and a target to a question. Raises `NotAskedError`."""

Targets = Callable[[Field, Asking], list[str]]
"""The labels that a picture may be asked about: the first by lot that can be, is. [""] where there is no target."""


@dataclass(frozen=True)
class TaskRule:
    """`code` is the paper's; `view` the pictures that it is asked of."""

    name: str
    code: str
    view: str
    rule: Rule
    targets: Targets


def _no_target(field: Field, asking: Asking) -> list[str]:
    return [""]


def _present(field: Field, asking: Asking) -> list[str]:
    return sorted(field.counts())


def _lesions(field: Field, asking: Asking) -> list[str]:
    return [name for name in _present(field, asking) if asking.labels.standard[name].kind == "lesion"]


def _where_marked(field: Field, asking: Asking) -> list[str]:
    return [""] if len(field.labels) else []


def _where_something_is(field: Field, asking: Asking) -> list[str]:
    return [""] if len(field.labels) or field.label is not None else []


def _cells(field: Field, asking: Asking) -> list[str]:
    return asking.labels.of_kinds(["cell"])


TASKS = (
    TaskRule("object-grounding", "OGD", "region", region.ground, _present),
    TaskRule("region-classification", "RCL", "region", region.classify_region, _where_something_is),
    TaskRule("object-classification", "OCL", "region", region.classify_object, _where_marked),
    TaskRule("object-counting", "OCN", "region", region.count_objects, _present),
    TaskRule("region-description", "RDS", "region", region.describe, _where_marked),
    TaskRule("density-localization", "DLO", "region", region.densest_quadrant, _present),
    TaskRule("spatial-relation", "SPR", "region", region.nearest, _where_marked),
    TaskRule("region-trap", "RFT", "region", region.trap, _where_something_is),
    TaskRule("organ-classification", "ORG", "slide", slide.organ, _no_target),
    TaskRule("lesion-grounding", "LGD", "slide", slide.ground_lesion, _lesions),
    TaskRule("slide-object-classification", "OCL", "slide", region.classify_object, _where_marked),
    TaskRule("area-estimation", "ARE", "slide", slide.estimate_area, _present),
    TaskRule("slide-density-localization", "DLO", "slide", slide.densest_quadrant, _present),
    TaskRule("slide-trap", "SFT", "slide", slide.trap, _cells),
)
