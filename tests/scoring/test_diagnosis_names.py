"""Which diagnosis a free text names: words that leave it the same, and words that do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsigym.errors import InvalidArgumentError
from wsigym.scoring.diagnosis import DiagnosisTable, Entity

ONTOLOGY = Path(__file__).resolve().parents[2] / "cohorts" / "synthetic" / "ontology.jsonl"


def _entity(name: str, *synonyms: str, behaviour: str = "malignant", family: str = "") -> Entity:
    return Entity(name, behaviour, "lineage", family or name, synonyms)


REAL = [
    _entity("Urothelial carcinoma", "Transitional cell carcinoma"),
    _entity("Squamous cell carcinoma", "SCC"),
    _entity("Melanoma"),
    _entity("Naevus", behaviour="benign"),
    _entity("Blue naevus", behaviour="benign"),
    _entity("Lichen planus", "Lichen", behaviour="non-neoplastic"),
    _entity("Gastrointestinal stromal tumour", behaviour="intermediate"),
    _entity("Hodgkin lymphoma"),
    _entity("Follicle centre lymphoma"),
    _entity("Gastric MALT lymphoma"),
    _entity("Hepatocellular carcinoma"),
    _entity("Papillary thyroid carcinoma", "Papillary carcinoma"),
    _entity("Paget disease of bone", "Paget disease", behaviour="non-neoplastic"),
    _entity("Adenocarcinoma"),
    _entity("Neuroendocrine carcinoma"),
    _entity("Chordoma"),
    _entity("Meningioma", behaviour="benign"),
    _entity("Mesothelioma"),
    _entity("Osteosarcoma"),
    _entity("Neurofibroma", behaviour="benign"),
    _entity("Ductal carcinoma in situ", behaviour="intermediate"),
    _entity("Leiomyoma", behaviour="benign"),
    _entity("Haemangioma", behaviour="benign"),
]
TABLE = DiagnosisTable(REAL)


def _shipped() -> list[Entity]:
    lines = [json.loads(line) for line in ONTOLOGY.read_text("utf-8").splitlines()]
    keys = ("behaviour", "lineage", "family", "synonyms", "parent")
    return [
        Entity(line["entity"], **{key: line[key] for key in keys if key in line}) for line in lines if "entity" in line
    ]


SHIPPED = _shipped()
SHIPPED_TABLE = DiagnosisTable(SHIPPED)


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("melanoma", "Melanoma"),
        ("A melanoma.", "Melanoma"),
        ("**Melanoma**", "Melanoma"),
        ("Diagnosis: melanoma", "Melanoma"),
        ("The final diagnosis is melanoma", "Melanoma"),
        ("Most likely melanoma", "Melanoma"),
        ("Melanoma (most likely)", "Melanoma"),
        ("Probable melanoma", "Melanoma"),
        ("Findings are consistent with melanoma", "Melanoma"),
        ("Histologic features most consistent with a melanoma", "Melanoma"),
        ("Suggestive of melanoma", "Melanoma"),
        ("Favour melanoma", "Melanoma"),
        ("melanoma, favored", "Melanoma"),
        ("compatible with melanoma of the skin", "Melanoma"),
        ("Cutaneous melanoma", "Melanoma"),
        ("Skin, left: melanoma", "Melanoma"),
        ("Melanoma, NOS", "Melanoma"),
        ("Melanoma - not otherwise specified", "Melanoma"),
        ("Osteosarcoma, conventional type", "Osteosarcoma"),
        ("Conventional osteosarcoma", "Osteosarcoma"),
        ("Hodgkin's lymphoma", "Hodgkin lymphoma"),
        ("Hodgkin lymphoma, classic", "Hodgkin lymphoma"),
        ("Follicle center lymphoma", "Follicle centre lymphoma"),
        ("MALT lymphoma, gastric", None),
        ("Gastric MALT lymphoma of the stomach", "Gastric MALT lymphoma"),
        ("Gastrointestinal stromal tumor (GIST)", "Gastrointestinal stromal tumour"),
        ("Gastrointestinal stromal tumour (GIST) of the stomach", "Gastrointestinal stromal tumour"),
        ("Squamous cell carcinoma (SCC)", "Squamous cell carcinoma"),
        ("Moderately differentiated squamous cell carcinoma", "Squamous cell carcinoma"),
        ("Squamous cell carcinoma, well to moderately differentiated, of the oral cavity", "Squamous cell carcinoma"),
        ("Squamous-cell carcinoma of the right lung", "Squamous cell carcinoma"),
        ("squamous cell carcinomas", "Squamous cell carcinoma"),
        ("Urothelial carcinoma (UC)", "Urothelial carcinoma"),
        ("High-grade urothelial carcinoma of the urinary bladder", "Urothelial carcinoma"),
        ("Urothelial carcinoma / transitional cell carcinoma", "Urothelial carcinoma"),
        ("Adenocarcinoma, Gleason score 3+4=7 (grade group 2)", "Adenocarcinoma"),
        ("Adenocarcinoma of the colon, grade 2", "Adenocarcinoma"),
        ("Poorly differentiated gastric adenocarcinoma", "Adenocarcinoma"),
        ("Ductal carcinoma in situ (DCIS), nuclear grade 3", "Ductal carcinoma in situ"),
        ("Papillary carcinoma of the thyroid", "Papillary thyroid carcinoma"),
        ("Spindle, most likely", None),
        ("Uterine leiomyoma", "Leiomyoma"),
        ("Nevus", "Naevus"),
        ("Hemangioma", "Haemangioma"),
        ("oral lichen planus", "Lichen planus"),
    ],
)
def test_what_leaves_the_diagnosis_the_same(text: str, entity: str | None) -> None:
    found = TABLE.entity(text)
    assert (found and found.name) == entity


@pytest.mark.parametrize(
    "text",
    [
        "Urothelial carcinoma in situ",
        "No evidence of urothelial carcinoma",
        "Non-invasive urothelial carcinoma",
        "Low-grade urothelial carcinoma",
        "High-grade papillary urothelial carcinoma, non-invasive",
        "Squamous cell carcinoma in situ",
        "Squamous cell carcinoma (in situ)",
        "squamous cell / carcinoma",
        "squamous cell ≠ carcinoma",
        "hepatocellular (?) carcinoma",
        "hepatocellular < carcinoma",
        "cutaneous Hodgkin lymphoma",
        "Hodgkin lymphoma of the skin",
        "cutaneous follicle centre lymphoma",
        "Squamous cell carcinoma, SCCIS",
        "Squamous cell carcinoma (SCCIS)",
        "benign squamous cell carcinoma",
        "Pseudo-squamous cell carcinoma",
        "Verrucous squamous cell carcinoma",
        "Melanoma in situ",
        "Melanoma (MIS)",
        "Melanoma cannot be excluded",
        "melanoma, excluded",
        "melanoma: ruled out",
        "Rule out melanoma",
        "Suspicious for melanoma",
        "Possible melanoma",
        "Melanoma?",
        "? melanoma",
        "melanoma unlikely",
        "melanoma, less likely",
        "not melanoma",
        "non-melanoma",
        "melanoma-like",
        "benign mimic of melanoma",
        "Naevus versus melanoma",
        "Melanoma vs. Spitz naevus",
        "Melanoma or squamous cell carcinoma",
        "Melanoma arising in a naevus",
        "Metastatic melanoma",
        "Clear cell sarcoma (melanoma of soft parts)",
        "Malignant blue naevus",
        "dysplastic naevus",
        "Naevus sebaceus",
        "Lichen sclerosus",
        "Papillary carcinoma of the breast",
        "Paget disease of the breast",
        "Mammary Paget's disease",
        "Adenocarcinoma (AIN)",
        "Adenocarcinoma in situ",
        "Well-differentiated neuroendocrine carcinoma",
        "Poorly differentiated chordoma",
        "Meningioma, WHO grade 3",
        "Malignant meningioma",
        "High-grade osteosarcoma",
        "Well-differentiated papillary mesothelioma",
        "Plexiform neurofibroma",
        "Neurofibroma, atypical",
        "Uterine leiomyoma of uncertain malignant potential",
        "Resolved lichen planus",
        "",
        "---",
        "(most likely)",
    ],
)
def test_what_may_be_another_diagnosis_is_not_mapped(text: str) -> None:
    assert TABLE.entity(text) is None
    graded = [TABLE.grade(entity.name, text) for entity in REAL]
    assert {each.grade for each in graded} == {0}
    assert {each.error for each in graded} <= {"W", "N"}


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("Invasive ductal carcinoma of the breast, Nottingham grade 2", "Invasive ductal carcinoma"),
        ("Invasive ductal carcinoma (IDC), NST", "Invasive ductal carcinoma"),
        ("Invasive lobular carcinoma, grade II", "Invasive lobular carcinoma"),
        ("High-grade DCIS", "Ductal carcinoma in situ"),
        ("Colonic adenocarcinoma, moderately differentiated", "Colonic adenocarcinoma"),
        ("Tubular adenoma of the colon with low-grade dysplasia", None),
        ("Tubular adenoma with low-grade dysplasia", "Tubular adenoma with low-grade dysplasia"),
        ("Clear cell renal cell carcinoma (ccRCC), WHO/ISUP grade 2", "Clear cell renal cell carcinoma"),
        ("Renal oncocytoma", "Oncocytoma"),
        ("Hepatocellular carcinoma (HCC), well differentiated", "Hepatocellular carcinoma"),
        ("Hepatocellular carcinoma of the liver", "Hepatocellular carcinoma"),
        ("Hepatocellular carcinoma of the lung", None),
        ("Squamous cell carcinoma of the lung", "Squamous cell carcinoma of the lung"),
        ("Squamous cell carcinoma", None),
        ("Squamous cell carcinoma in situ (Bowen's disease)", "Squamous cell carcinoma in situ"),
        ("Acinar adenocarcinoma of the prostate, Gleason 4+3=7", "Acinar adenocarcinoma of the prostate"),
        ("Prostatic acinar carcinoma (acinar adenocarcinoma of the prostate)", "Acinar adenocarcinoma of the prostate"),
        ("Benign prostatic hyperplasia (BPH)", "Nodular hyperplasia"),
        ("Spitz nevus", "Spitz naevus"),
        ("Atypical Spitz naevus", None),
        ("Malignant melanoma (melanoma)", "Malignant melanoma"),
        ("Cellular blue naevus", None),
        ("Metastatic adenocarcinoma of the liver", "Metastatic adenocarcinoma"),
        ("Adenocarcinoma", None),
        ("Chronic hepatitis", "Chronic hepatitis"),
        ("Chronic hepatitis with cirrhosis", None),
    ],
)
def test_the_synthetic_cohorts_ontology(text: str, entity: str | None) -> None:
    found = SHIPPED_TABLE.entity(text)
    assert (found and found.name) == entity


SAME = ("{}", "Diagnosis: {}.", "most likely {}", "features of a {}", "{}, NOS", "consistent with ({})")
OTHER = ("no {}", "{} in situ component", "{} versus other", "{}-like", "{}, excluded", "rule out {}", "early {}")


@pytest.mark.parametrize("entities", [REAL, SHIPPED], ids=["real", "shipped"])
def test_every_name_maps_and_never_where_it_is_denied(entities: list[Entity]) -> None:
    table = DiagnosisTable(entities)
    for entity in entities:
        for name in (entity.name, *entity.synonyms):
            for frame in SAME:
                assert table.entity(frame.format(name)) is entity, frame.format(name)
            for frame in OTHER:
                assert table.entity(frame.format(name)) is None, frame.format(name)


@pytest.mark.parametrize("other", ["spitz-naevus", "SPITZ NAEVUS"])
def test_a_name_has_one_diagnosis(other: str) -> None:
    with pytest.raises(InvalidArgumentError, match="need one"):
        DiagnosisTable([_entity("Spitz naevus"), _entity(other)])


@pytest.mark.parametrize("other", ["Spitz nevus", "Spitz's naevus", "Spitz (naevus)", "Spitz, naevus"])
def test_diagnoses_that_spelling_alone_tells_apart_are_read_as_they_are_written(other: str) -> None:
    one, two = _entity("Spitz naevus"), _entity(other)
    table = DiagnosisTable([one, two])
    assert table.entity("Spitz naevus") is one
    assert table.entity(other) is two
    assert table.entity("most likely a Spitz naevus") is None


def test_a_name_with_signs_is_itself() -> None:
    entities = [_entity("Tumour X (NOS)?"), _entity("CD30+ lymphoma / papulosis")]
    table = DiagnosisTable(entities)
    assert [table.entity(entity.name) for entity in entities] == entities
