"""The main job on the synthetic cohort: every localization baseline and the oracle over the three budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wsigym.cohorts import Cohort
from wsigym.cohorts.synthetic import cached_cohort
from wsigym.envs.budgets import PRESETS

from .evipath.localization import Localization
from .evipath.localization_plot import budget_curve
from .evipath.localization_table import budget_table, localization_tables
from .pictures import trajectory_picture
from .records import EpisodeRecord
from .run_folder import load_run
from .runner import Progress, run
from .tables import Table, TableOptions

__all__ = ["Demo", "demo"]

DEMO_SLIDES = 12
POLICIES = ("random", "search-centre", "tissue-centroid", "tissue-density", "stain-density", "oracle")
TASK = Localization()


@dataclass(frozen=True)
class Demo:
    """What the demo made: its folders, pictures and tables."""

    cohort: Path
    run: Path
    curve: Path
    trajectory: Path
    tables: tuple[Table, ...]


def demo(
    out: Path, *, jobs: int, slides_progress: Progress | None = None, episodes_progress: Progress | None = None
) -> Demo:
    """Make the cohort of 12 slides (once, in the user's cache), sweep, and write run folder and pictures to `out`.

    Called again it plays what is missing only. Raises what `run` raises.
    """
    cohort = cached_cohort(slides=DEMO_SLIDES, jobs=jobs, progress=slides_progress)
    folder = out / "run"
    run(
        TASK.name,
        policies=POLICIES,
        budgets=list(PRESETS),
        cohort=cohort,
        jobs=jobs,
        out=folder,
        progress=episodes_progress,
    )
    records = load_run(folder).records
    curve, trajectory = out / "budget-curve.png", out / "trajectory.png"
    budget_curve(records).save(curve)
    _draw(Cohort.load(cohort), _worth_showing(records), trajectory)
    tables = (*localization_tables(records, TableOptions()), budget_table(records))
    return Demo(cohort, folder, curve, trajectory, tables)


def _worth_showing(records: Sequence[EpisodeRecord]) -> EpisodeRecord:
    """The best answer of the stain search at the base budget, on a 10x query where there is one."""

    def rank(record: EpisodeRecord) -> tuple[bool, float]:
        return record.groups["magnification"] == 10, record.score or 0.0

    return max((record for record in records if record.policy == "stain-density" and record.budget == "base"), key=rank)


def _draw(cohort: Cohort, record: EpisodeRecord, path: Path) -> None:
    item = next(item for item in TASK.items(cohort, None) if item.item_id == record.item)
    trajectory_picture(cohort, item.question, item.reference, record).save(path)
