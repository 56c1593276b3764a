"""wsigym: Gymnasium environments in which agents navigate whole-slide pathology images.

Importing it registers the environment ids, so that `gymnasium.make("wsigym/Localization-v0")` works. It is light:
the public names below load their modules when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from wsigym.envs.registration import register_all

if TYPE_CHECKING:
    from wsigym.cohorts import Cohort as Cohort
    from wsigym.slides import Box as Box
    from wsigym.slides import Slide as Slide
    from wsigym.slides import open_slide as open_slide

__version__ = "0.1.0"

_WHERE = {"Box": "slides", "Cohort": "cohorts", "Slide": "slides", "open_slide": "slides"}

__all__ = ["Box", "Cohort", "Slide", "__version__", "open_slide"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"wsigym.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register_all()
