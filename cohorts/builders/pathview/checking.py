"""What is wrong with the files of a cohort's `pathview/` folder, all of it and none raised."""

from __future__ import annotations

from wsigym.errors import CohortError, Fault

from ...cohort import Cohort
from .labels import Labels, load_labels
from .marks import Marks
from .readers import READERS
from .sources import SOURCES, Picture, Source, load_pictures, load_sources
from .unmapped import Unmapped

__all__ = ["pathview_faults"]


class _NoLog:
    """What the suite's filters drop is no fault."""

    def annotation(self, source: str, image: str, label: str, where: str, reason: str) -> None:
        pass

    def item(self, task: str, source: str, image: str, label: str, reason: str) -> None:
        pass


def pathview_faults(cohort: Cohort) -> list[Fault]:
    """Every fault of the labels, the sources, their tables of images and their annotation files, which are read; none
    where there are no sources. Among them are annotations without a usable box, which a build drops and logs."""
    if not (cohort.root / SOURCES).is_file():
        return []
    faults: list[Fault] = []
    labels: Labels | None = None
    sources: tuple[Source, ...] = ()
    try:
        labels = load_labels(cohort.root)
    except CohortError as error:
        faults += error.faults
    try:
        sources = load_sources(cohort.root)
    except CohortError as error:
        faults += error.faults
    unmapped = Unmapped()
    for source in sources:
        pictures: list[Picture] = []
        marks = Marks(source.name, _NoLog())
        try:
            pictures = load_pictures(cohort, source)
        except CohortError as error:
            faults += error.faults
        try:
            READERS[source.format](cohort.root, source, marks)
        except CohortError as error:
            faults += error.faults
        faults += marks.unusable.listed
        if labels is not None:
            unmapped.look(labels, marks, pictures)
    return faults + unmapped.faults
