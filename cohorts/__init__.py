"""What is known of the slides: manifests, diagnostic trees, annotated regions, queries, the synthetic cohort."""

from .cohort import Cohort
from .models import DiagnosticPath, Manifest, Node, PathDetails, SlideEntry
from .queries import LocalizationQuery, LocalizationReference, localization_queries
from .regions import Region

__all__ = [
    "Cohort",
    "DiagnosticPath",
    "LocalizationQuery",
    "LocalizationReference",
    "Manifest",
    "Node",
    "PathDetails",
    "Region",
    "SlideEntry",
    "localization_queries",
]
