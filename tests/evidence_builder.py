"""Items and references of evidence tasks for tests, on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort_builder import build_cohort, write_lines
from PIL import Image
from slides_builder import noise

SUITE, TASK = "test", "choice"

EVIDENCE = {"one": "The image shows one field.", "many": "The {count} images show fields of one case."}


def item(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A four-way item on two fields of slide s1 and a file; `changes` replace fields."""
    return {
        "item_id": f"i{number}",
        "suite": SUITE,
        "task": TASK,
        "question": f"Which of these is seen ({number})?",
        "answer": {"kind": "option", "words": "Answer with one letter."},
        "options": ["crowded glands", "sheets", "mitoses", "necrosis"],
        "images": [
            {"slide_id": "s1", "box": [200, 100, 1200, 1100], "magnification": 2.5},
            {"slide_id": "s1", "box": [300, 200, 400, 300], "magnification": 10},
            {"file": "images/field.png", "magnification": 40},
        ],
        "evidence": EVIDENCE,
        "metadata": {"organ": "colon", "site": "sigmoid colon", "magnification": 10},
        "group": {"patient": f"p{number % 7}", "slide": "s1", "set": f"set{number // 4}"},
        "set_id": f"set{number // 4}",
        **changes,
    }


def reference(number: int = 0, **changes: Any) -> dict[str, Any]:
    """The reference of `item(number)`; the keys go round the four options."""
    return {"item_id": f"i{number}", "answer": number % 4, "provenance": {"rule": "test"}, **changes}


def build_evidence(
    folder: Path,
    items: Sequence[Mapping[str, Any]],
    references: Sequence[Mapping[str, Any]],
    *,
    suite: str = SUITE,
    task: str = TASK,
    **cohort: Any,
) -> Path:
    """A cohort (see cohort_builder) with an image and the files of one task."""
    if not (folder / "cohort.json").exists():
        build_cohort(folder, **cohort)
    (folder / "images").mkdir(exist_ok=True)
    Image.fromarray(noise(90, 60, 5)).save(folder / "images" / "field.png")
    for kind, lines in (("items", items), ("references", references)):
        (folder / kind / suite).mkdir(parents=True, exist_ok=True)
        write_lines(folder / kind / suite / f"{task}.jsonl", lines)
    return folder
