"""Items built from what a cohort knows, by task, in one table. A new builder is a file and a line here.

built = build_items("evipath/interpretation", cohort, Build(encoder="tfidf"))
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wsigym.errors import InvalidArgumentError, UnknownNameError

from ..cohort import Cohort
from ..item_files import write_items
from . import evipath, pathview
from .building import CELL_FIELDS, Build, Builder, Built, Reword
from .casescope import tasks as casescope

__all__ = ["BUILDERS", "CELL_FIELDS", "Build", "Builder", "Built", "Reword", "build_items", "build_synthetic_items"]

BUILDERS: Mapping[str, Builder] = {
    "evipath/interpretation": evipath.interpretation,
    "evipath/verification": evipath.verification,
    "evipath/integration": evipath.integration,
    "casescope/a1": casescope.a1,
    "casescope/a2": casescope.a2,
    "casescope/b": casescope.b,
    "casescope/c": casescope.c,
    "casescope/r1": casescope.r1,
    "casescope/g1": casescope.g1,
}


def build_items(name: str, cohort: Cohort, build: Build) -> Built:
    """Build the items of `SUITE/TASK` from a cohort and write them, with their references, into its folder.

    They replace what was there. The cohort has to be loaded again. Raises `UnknownNameError` for a task without a
    builder, and `InvalidArgumentError` where nothing can be built.
    """
    if name not in BUILDERS:
        raise UnknownNameError("task with items to build", name, BUILDERS)
    built = BUILDERS[name](cohort, build)
    if not built.asked:
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in built.dropped.items()) or "nothing to ask"
        cell = " A smaller --cell, such as magnification alone, has more to choose from."
        raise InvalidArgumentError(
            f"no item of {name} can be built from cohort {cohort.name!r}: {reasons}."
            + (cell if name.startswith("evipath/") else "")
        )
    built.asked = build.reword(built.asked)
    suite, _, task = name.partition("/")
    write_items(cohort.root, suite, task, built.asked)
    return built


def build_synthetic_items(folder: Path) -> None:
    """The items of a synthetic cohort, for every builder: by TF-IDF, distractors from all organs of a split at a
    magnification, since a few slides have too few findings of one organ."""
    cohort = Cohort.load(folder)
    for name in BUILDERS:
        try:
            build_items(name, cohort, Build(cell=("magnification",)))
        except InvalidArgumentError:
            continue  # one or two slides may be too few for a set of four
    pathview.build_pathview(cohort)
