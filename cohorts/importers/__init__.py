"""Annotation files of other programs, read into areas, nodes and cohorts.

    read_annotations("tumor_001.xml", "asap")                               the areas of one slide
    import_annotations(files, "asap", "cohort", slides="training/tumor")    regions/<slide_id>.geojson of a cohort
    import_nodes(files, "cohort")                                           nodes.jsonl of a cohort

A dialect is one file here and one line in `DIALECTS`.
"""

from .dialects import DIALECTS, read_annotations, read_drawings
from .intake import Import, ImportReport, import_annotations, import_nodes
from .nodes import read_nodes
from .shapes import EXCLUSION, Annotations, Drawing, settle

__all__ = [
    "DIALECTS",
    "EXCLUSION",
    "Annotations",
    "Drawing",
    "Import",
    "ImportReport",
    "import_annotations",
    "import_nodes",
    "read_annotations",
    "read_drawings",
    "read_nodes",
    "settle",
]
