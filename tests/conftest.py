"""Fixtures for every test: where the shared files are, and how to get them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import build_cohort
from hypothesis import settings

# A busy machine is no fault of an example; in CI the examples are the same each time.
settings.register_profile("wsigym", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("wsigym")

# A shell's background jobs ignore Ctrl-C, and so would what tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared"

HOW_TO_GET = (
    "real slides and failing input files are looked for in ../shared beside the checkout; see CONTRIBUTING.md, "
    "'Files for tests', for where they come from"
)


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """The folder of input files that break readers; EXPECTED.md says what the right answers are."""
    folder = SHARED / "cases"
    if not folder.is_dir():
        pytest.skip(HOW_TO_GET)
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real slides and annotations."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(HOW_TO_GET)
    return folder


@pytest.fixture(scope="session")
def published() -> Callable[[str], list[dict[str, Any]]]:
    """The rows of one of the papers' tables by its file's name, each a dict by column."""
    folder = SHARED / "spec" / "published"
    if not folder.is_dir():
        pytest.skip(HOW_TO_GET)

    def rows(name: str) -> list[dict[str, Any]]:
        table = json.loads((folder / f"{name}.json").read_text("utf-8"))
        return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]

    return rows


@pytest.fixture(scope="session")
def tiny_cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a cohort of two small slides with five queries each (see cohort_builder). Not to be written to."""
    return build_cohort(tmp_path_factory.mktemp("tiny"))
