"""The fourteen tasks of PathView-Bench, built by rules from annotations (protocol, section 5).

    pathview/sources.toml    which images are annotated, in which files            (`sources`)
    pathview/labels.toml     from raw to standard labels                           (`labels`)

`readers` turn files into columns of boxes (`marks`); `field` filters those of one picture; `tasks` is the table of
rules (`region_rules`, `slide_rules`) that ask; `splits` keeps together what belongs together; `building` joins them.
"""

from .building import PathViewBuilt, build_pathview, has_sources
from .tasks import SUITE, TASKS

__all__ = ["SUITE", "TASKS", "PathViewBuilt", "build_pathview", "has_sources"]
