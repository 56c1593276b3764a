"""Grades against a small ontology: each class of error, Top-3, the identities of the paper's table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsigym.errors import InvalidArgumentError, UnknownNameError
from wsigym.scoring.diagnosis import ERROR_CLASSES, Diagnosis, DiagnosisTable, Entity, diagnosis_report

ENTITIES = [
    Entity("Melanoma", "malignant", "melanocytic", "melanoma", ("Malignant melanoma",)),
    Entity("Acral melanoma", "malignant", "melanocytic", "melanoma", parent="Melanoma"),
    Entity("Melanoma in situ", "intermediate", "melanocytic", "melanoma", parent="Melanoma"),
    Entity("Clear cell sarcoma", "malignant", "melanocytic", "sarcoma"),
    Entity("Spitz naevus", "benign", "melanocytic", "naevus", ("Spitz nevus",)),
    Entity("Squamous cell carcinoma", "malignant", "epithelial", "squamous", ("SCC",)),
    Entity("Uveal melanoma", "malignant", "melanocytic", "melanoma"),
]
TABLE = DiagnosisTable(ENTITIES)


@pytest.mark.parametrize(
    ("answer", "grade", "error", "entity"),
    [
        ("Melanoma", 1, "exact", "Melanoma"),
        ("malignant melanoma", 1, "exact", "Melanoma"),
        ("Malignant melanoma, NOS", 1, "exact", "Melanoma"),
        ("Malignant melanoma, nodular type", 0, "W", None),
        ("Acral melanoma", 1, "exact", "Acral melanoma"),
        ("Uveal melanoma", 0.5, "F", "Uveal melanoma"),
        ("Clear cell sarcoma", 0, "L", "Clear cell sarcoma"),
        ("SCC", 0, "W", "Squamous cell carcinoma"),
        ("Spitz nevus", 0, "B", "Spitz naevus"),
        ("Melanoma in situ", 0, "B", "Melanoma in situ"),
        ("Melanoma or Spitz naevus", 0, "W", None),
        ("no melanoma", 0, "W", None),
        ("Something else", 0, "W", None),
        ("", 0, "N", None),
        ("  ", 0, "N", None),
        (None, 0, "N", None),
    ],
)
def test_each_class_of_error(answer: str | None, grade: float, error: str, entity: str | None) -> None:
    result = TABLE.grade("Melanoma", answer)
    assert (result.grade, result.error, result.entity) == (grade, error, entity)
    assert result.top3 == (error == "exact")


def test_a_broader_entity_is_not_exact() -> None:
    assert TABLE.grade("Acral melanoma", "Melanoma").error == "F"


def test_alternates() -> None:
    assert TABLE.grade("Melanoma", "Spitz naevus", alternates=["Spitz naevus"]).grade == 1


def test_top3_looks_at_two_differentials() -> None:
    assert TABLE.grade("Melanoma", "SCC", ["Spitz naevus", "Melanoma"]).top3
    assert not TABLE.grade("Melanoma", "SCC", ["Spitz naevus", "SCC", "Melanoma"]).top3
    assert not TABLE.grade("Melanoma", "SCC", ["Uveal melanoma"]).top3


@pytest.mark.parametrize(
    ("answer", "judged", "grade", "error"),
    [
        ("SCC", 2, 1, "exact"),
        ("SCC", 1, 0.5, "F"),
        ("SCC", 0, 0, "W"),
        ("Melanoma", 0, 1, "exact"),
        ("Melanoma", 1, 1, "exact"),
        ("Uveal melanoma", 0, 0.5, "F"),
        ("Uveal melanoma", 2, 1, "exact"),
    ],
)
def test_a_judge_can_only_raise(answer: str, judged: int, grade: float, error: str) -> None:
    result = TABLE.grade("Melanoma", answer, judged=judged)
    assert (result.grade, result.error) == (grade, error)


def test_bad_ontologies_and_grades() -> None:
    with pytest.raises(UnknownNameError, match="Melanoma"):
        TABLE.grade("Melanma", "x")
    with pytest.raises(InvalidArgumentError, match="0, 1 and 2"):
        TABLE.grade("Melanoma", "x", judged=3)
    with pytest.raises(InvalidArgumentError, match="no entity"):
        DiagnosisTable([Entity("a", "", "", "", parent="b")])
    with pytest.raises(InvalidArgumentError, match="'B' is a name of 'b' and 'a'"):
        DiagnosisTable([Entity("b", "", "", ""), Entity("a", "", "", "", ("B",))])
    with pytest.raises(InvalidArgumentError, match="need one"):
        DiagnosisTable([Entity("a", "", "", ""), Entity("a", "", "", "x")])


def test_a_cycle_of_parents_ends() -> None:
    table = DiagnosisTable(
        [Entity("a", "", "", "", parent="b"), Entity("b", "", "", "", parent="a"), Entity("c", "", "", "f")]
    )
    assert table.grade("c", "a").grade == 0


@given(st.lists(st.tuples(st.sampled_from([entity.name for entity in ENTITIES]), st.text() | st.sampled_from(["SCC"]))))
def test_the_identities_of_the_table(pairs: list[tuple[str, str]]) -> None:
    diagnoses = [TABLE.grade(reference, answer) for reference, answer in pairs]
    diagnoses += [TABLE.grade(entity.name, other.name) for entity in ENTITIES for other in ENTITIES]
    report = diagnosis_report(diagnoses)
    assert report.hds == pytest.approx(report.shares["exact"] + report.shares["F"] / 2)
    assert sum(report.shares.values()) == pytest.approx(100)
    assert report.top1 == pytest.approx(report.shares["exact"])
    assert report.top3_share is not None
    assert report.top1 is not None
    assert report.top3_share >= report.top1


def test_the_papers_first_row_from_its_counts() -> None:
    # 264 exact and 32 within the family of 436: exact 60.6, F 7.3, HDS 64.2.
    diagnoses = [Diagnosis(1, "exact", True, "x")] * 264 + [Diagnosis(0.5, "F", False, "x")] * 32
    report = diagnosis_report(diagnoses + [Diagnosis(0, "B", True, None)] * 140)
    assert report.hds == pytest.approx(64.22, abs=0.005)
    assert report.shares["exact"] == pytest.approx(60.6, abs=0.051)
    assert report.shares["F"] == pytest.approx(7.3, abs=0.051)
    assert report.unmapped == pytest.approx(100 * 140 / 436)
    assert tuple(report.shares) == ERROR_CLASSES


def test_no_answers() -> None:
    report = diagnosis_report([])
    assert (report.hds, report.top1, report.top3_share, report.shares, report.unmapped) == (None, None, None, {}, None)
