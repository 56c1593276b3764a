"""What is known of the slides: manifests, diagnostic trees, annotated regions, queries, the synthetic cohort."""

from .cohort import Cohort
from .item_files import Asked, load_items, write_items
from .items import AnswerFormat, EvidenceItem, EvidenceWords, ImageSpec, Metadata, TextFinding
from .models import DiagnosticPath, Manifest, Node, PathDetails, SlideEntry
from .queries import LocalizationQuery, LocalizationReference, localization_queries
from .references import EvidenceReference
from .regions import Region

__all__ = [
    "AnswerFormat",
    "Asked",
    "Cohort",
    "DiagnosticPath",
    "EvidenceItem",
    "EvidenceReference",
    "EvidenceWords",
    "ImageSpec",
    "LocalizationQuery",
    "LocalizationReference",
    "Manifest",
    "Metadata",
    "Node",
    "PathDetails",
    "Region",
    "SlideEntry",
    "TextFinding",
    "load_items",
    "localization_queries",
    "write_items",
]
