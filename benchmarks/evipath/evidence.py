"""`evipath/interpretation`, `verification` and `integration`: EviPathBench tasks 1, 2 and 4, four options each.

Their items are built by `wsigym items build` (`wsigym.cohorts.builders.evipath`). Each is asked once; chance is 25 %.
"""

from __future__ import annotations

from ..evidence_measures import ACCURACY
from ..evidence_task import EvidenceTask
from .evidence_published import published_table

__all__ = ["INTEGRATION", "INTERPRETATION", "VERIFICATION"]

INTERPRETATION = EvidenceTask(
    "evipath/interpretation",
    "choose the finding that an image shows (EviPathBench task 1)",
    measures=(ACCURACY,),
    published=published_table,
)
VERIFICATION = EvidenceTask(
    "evipath/verification",
    "choose the image that shows a finding (EviPathBench task 2)",
    measures=(ACCURACY,),
    published=published_table,
)
INTEGRATION = EvidenceTask(
    "evipath/integration",
    "diagnose, triage and refine from three findings in words (EviPathBench task 4)",
    measures=(ACCURACY,),
    split_by="type",
    published=published_table,
)
