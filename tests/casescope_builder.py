"""CaseScope's sources for tests, on disk: an ontology of names without meaning, cases on one picture, statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort_builder import write_lines
from PIL import Image
from slides_builder import noise

Lines = Sequence[Mapping[str, Any]]


def entity(name: str, **changes: Any) -> dict[str, Any]:
    """A malignant epithelial entity of the skin; `changes` replace fields."""
    return {
        "entity": name,
        "behaviour": "malignant",
        "lineage": "epithelial",
        "family": "alpha family",
        "systems": ["skin"],
        "he": "Y",
        **changes,
    }


def ontology() -> list[dict[str, Any]]:
    """Key, its family (F), its system (S*), its lineage elsewhere (L), and what is excluded (X*)."""
    return [
        entity(
            "Key", synonyms=["Keyword tumour"], look_alikes=["Twin"], partners=["Partner"], grading="scale", level="Two"
        ),
        entity("Twin", family="beta", lineage="other", systems=["bone"], synonyms=["TW"]),
        entity("Partner", family="beta", lineage="other", systems=["bone"]),
        entity("F1"),
        entity("F2", behaviour="benign"),
        entity("S1", family="beta"),
        entity("S2", family="beta", behaviour="benign"),
        entity("S3", family="beta", lineage="other"),
        *(entity(f"L{n}", family="beta", systems=["bone"]) for n in range(6)),
        entity("Xgroup"),
        entity("Xparent"),
        entity("Xsubtype", parent="Key"),
        entity("Xsibling", grading="scale", level="One"),
        entity("Xalternate"),
        entity("Situ", behaviour="intermediate", in_situ=True),
        entity("Debated", behaviour="benign", behaviour_sure=False, grading="scale"),
        entity("Far", family="far", lineage="far", systems=["far"], behaviour="non-neoplastic", he="N"),
        {"exclusion": "like the key", "kind": "equivalent", "members": ["Key", "Xgroup"]},
        {"exclusion": "above the key", "kind": "subtype", "members": ["Key", "Xparent"]},
        {"grading": "scale", "levels": ["One", "Two", "Three"]},
    ]


def case(number: int = 0, count: int = 3, **changes: Any) -> dict[str, Any]:
    """A case of Key with some fields, of which the first two have findings."""
    powers = (2.5, 10, 20, 40)
    shown: list[dict[str, Any]] = [
        {"image": {"file": "images/field.png", "magnification": powers[min(place, 3)]}} for place in range(count)
    ]
    for place in range(min(2, count)):
        shown[place]["finding"] = f"Finding {place} of the Keyword tumour."
    return {
        "case_id": f"zqcase{number}",
        "entity": "Key",
        "fields": shown,
        "site": "left knee",
        "source": ("teaching", "atlas")[number % 2],
        "patient_id": f"zqp{number}",
        **changes,
    }


TRUE = ("round cells fill the field", "small nests lie in pale stroma")
FALSE = ("long spindles cross the view", "wide lakes of mucin are seen")


def statements(case_id: str = "zqcase0", level: str | None = "low") -> list[dict[str, Any]]:
    """Two true and two false statements on a case."""
    told = [{"case_id": case_id, "level": level, "statement": text, "true": True} for text in TRUE]
    return told + [
        {"case_id": case_id, "level": level, "statement": text, "true": False, "basis": basis}
        for text, basis in zip(FALSE, ("F1", "Three"), strict=True)
    ]


def build_casescope(
    folder: Path, *, entities: Lines | None = None, cases: Lines | None = None, told: Lines | None = None
) -> Path:
    """A cohort without slides with these sources; by default one case with statements."""
    (folder / "casescope").mkdir(parents=True, exist_ok=True)
    (folder / "images").mkdir(exist_ok=True)
    Image.fromarray(noise(60, 40, 3)).save(folder / "images" / "field.png")
    manifest = {"format": "wsigym-cohort/1", "name": "cases", "slides": []}
    (folder / "cohort.json").write_text(json.dumps(manifest), encoding="utf-8")
    for name, lines in (
        ("ontology", ontology() if entities is None else entities),
        ("cases", [case()] if cases is None else cases),
        ("statements", statements() if told is None else told),
    ):
        write_lines(folder / "casescope" / f"{name}.jsonl", lines)
    return folder
