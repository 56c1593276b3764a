"""An audit: every rule on every task, every check on the cohort."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from wsigym.cohorts import Asked, Cohort, load_items
from wsigym.cohorts.files import item_tasks
from wsigym.errors import InvalidArgumentError, UnknownNameError

from .checks import CHECKS, Audited
from .guessing import guesses_of
from .pictures import Progress, pictures_of, pictures_under
from .results import Audit

__all__ = ["audit"]

Shown = Callable[[str], AbstractContextManager[Progress | None]]
"""A progress bar for things of a kind."""


def audit(cohort: Cohort, name: str | None = None, *, corpus: Path | None = None, shown: Shown | None = None) -> Audit:
    """Audit the items of a cohort, or those of `SUITE` or `SUITE/TASK`, also against the images of a `corpus` folder.

    Deterministic; nothing is written. Raises `CohortError` where files of the cohort are faulty, `UnknownNameError`
    where it has no such items, and `InvalidArgumentError` where it has none at all or the corpus is no folder. An image
    that cannot be read is told in the result, not raised.
    """
    shown = shown or (lambda things: nullcontext())
    if corpus is not None and not corpus.is_dir():
        raise InvalidArgumentError(f"--corpus {corpus} is no folder; name one with images in it.")
    tasks = _chosen(cohort, name)
    with shown("images") as progress:
        pictures = pictures_of(cohort, [each for asked in tasks.values() for each in asked], progress)
    audited = Audited(cohort, tasks, pictures)
    if corpus is not None:
        with shown("images of the corpus") as progress:
            found, others = pictures_under(corpus, progress)
        audited = Audited(cohort, tasks, pictures, found, others)
    confidence, guesses = guesses_of(tasks)
    return Audit(cohort.name, confidence, guesses, [check(audited) for check in CHECKS])


def _chosen(cohort: Cohort, name: str | None) -> Mapping[str, Sequence[Asked]]:
    known = [f"{suite}/{task}" for suite, task in item_tasks(cohort.root)]
    if not known:
        raise InvalidArgumentError(f"cohort {cohort.name!r} has no items; `wsigym items build` makes them.")
    chosen = [task for task in known if name is None or name in (task, task.partition("/")[0])]
    if not chosen:
        raise UnknownNameError("suite or task of the cohort", str(name), known)
    return {task: load_items(cohort, *task.split("/", 1)) for task in chosen}
