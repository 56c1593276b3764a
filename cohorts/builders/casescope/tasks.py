"""The items of CaseScope's six tasks, each from the same cases.

a1   the diagnosis in free words, two differentials, a confidence
a2   the diagnosis among ten
b    the behaviour among four, always the same; cases of a debated code are left out
c    the level of the case's grading group
r1   four statements a level, two of them true
g1   which field shows a finding that a caption ties to one
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from wsigym.errors import InvalidArgumentError

from ...cohort import Cohort
from ...files import REFERENCES
from ...item_files import ONTOLOGY, Asked
from ...items import AnswerFormat, EvidenceItem, EvidenceWords, Metadata, in_base_order
from ...references import EvidenceReference, KnownEntity
from ...writing import write_text
from ..building import Build, Built
from .cases import CASES, CaseField, CaseLine, Sources, load_sources, without_names
from .distractors import distractors
from .ontology import BEHAVIOURS, Ontology
from .statements import by_item

__all__ = ["BEHAVIOUR_OPTIONS", "SUITE", "a1", "a2", "b", "c", "g1", "r1"]

SUITE = "casescope"

NO_IMAGE = "The following question concerns H&E-stained sections of one lesion of one case (no images are provided)."

WORDS = {
    "lesion": EvidenceWords(
        one="The following H&E-stained microscopy image is a field from the lesion of one case.",
        many="The following {count} H&E-stained microscopy images are fields from the same lesion of one case, ordered "
        "from low to high magnification.",
        none=NO_IMAGE,
        mosaic="The image is a mosaic of {count} numbered H&E fields (1-{count}, from low to high magnification) from "
        "the same lesion of one case.",
    ),
    "disease": EvidenceWords(
        one="The following H&E-stained microscopy image is a field of one disease.",
        many="The following {count} H&E-stained microscopy images are fields of one disease, which may come from "
        "several cases, ordered from low to high magnification.",
        none="The following question concerns H&E-stained sections of one disease (no images are provided).",
        mosaic="The image is a mosaic of {count} numbered H&E fields (1-{count}, from low to high magnification) of "
        "one disease, which may come from several cases.",
    ),
}
"""The paper's sentences; that of a disease is this project's wording of what the paper's prompt says."""

# The paper's instructions. With fewer images, even one, they stay as they are: of its ablations only that of the text
# alone replaces the first sentence (section S6.7, for r1; for the other tasks this project's).
CHOOSE = AnswerFormat(
    kind="option",
    words="Integrate all images and answer with the option's letter from the given choices directly.",
    words_for_text="Answer from the text with the option's letter from the given choices directly.",
)
_DIAGNOSE = (
    'Output only this JSON: {"diagnosis": "most likely pathological diagnosis", '
    '"differential": ["differential 1", "differential 2"], "confidence": integer 0-100}'
)
DIAGNOSE = AnswerFormat(
    kind="diagnosis", words=f"Integrate all images. {_DIAGNOSE}", words_for_text=f"Answer from the text. {_DIAGNOSE}"
)
_JUDGE = (
    "Output only JSON in this format, with four judgements in statement order, each true (correct) or false "
    '(incorrect): {"answers": [true/false, true/false, true/false, true/false]}'
)
JUDGE = AnswerFormat(
    kind="json", words=f"Integrate all images. {_JUDGE}", words_for_text=f"Answer from the text. {_JUDGE}"
)

BEHAVIOUR_OPTIONS = (
    "Non-neoplastic lesion (inflammatory, infectious, reactive, cystic, developmental, etc.)",
    "Benign neoplasm",
    "Borderline / uncertain malignant potential, in situ or precursor lesion",
    "Malignant neoplasm",
)

TOLD = {"low": ("low-power architecture of this case", "At low power, "), "high": (
    "high-power cytology of this case", "At high power, "), None: ("H&E findings of this case", "")}  # fmt: skip
"""What the four statements of a level are about, and how each begins."""


def a1(cohort: Cohort, build: Build) -> Built:
    """One item a case, graded against the ontology, of which the references keep what grading needs."""
    sources, built = _sources(cohort, build), Built()
    write_text(cohort.root / REFERENCES / SUITE / ONTOLOGY, _grading_table(sources.ontology))
    for _, case in sources.cases:
        answer: Any = {"diagnosis": case.entity}
        accepted = tuple({"diagnosis": name} for name in case.alternates)
        question = "Give the most likely pathological diagnosis."
        built.asked.append(_asked(sources, case, "a1", question, DIAGNOSE, answer=answer, accepted=accepted))
    return built


def a2(cohort: Cohort, build: Build) -> Built:
    """One item a case for which nine distractors are left; the provenance has the priority of each."""
    sources, built = _sources(cohort, build), Built()
    for _, case in sources.cases:
        drawn = distractors(sources, case, build.seed)
        if drawn is None:
            built.dropped["fewer than nine diagnoses of its family, systems or lineage may stand beside it"] += 1
            continue
        of_entity = {one.entity: one for one in drawn}
        order = in_base_order([case.entity, *of_entity], _item_id("a2", case), build.seed)
        family = sum(one.same_family for one in drawn)
        built.asked.append(
            _asked(
                sources,
                case,
                "a2",
                "What is the most likely pathological diagnosis?",
                CHOOSE,
                options=order,
                answer=order.index(case.entity),
                strata={"same_family": "0" if not family else "1-2" if family < 3 else "3-5" if family < 6 else "6-9"},
                provenance={
                    "priorities": {one.entity: one.priority for one in drawn},
                    "look_alikes": [one.entity for one in drawn if one.look_alike],
                },
            )
        )
    return built


def b(cohort: Cohort, build: Build) -> Built:
    """One item a case whose behaviour is beyond debate; the options stand from harmless to harmful in rotation 0."""
    sources, built = _sources(cohort, build), Built()
    for _, case in sources.cases:
        line = sources.ontology.entities[case.entity]
        if not line.behaviour_sure:
            built.dropped["the code of its behaviour is debated"] += 1
            continue
        built.asked.append(
            _asked(
                sources,
                case,
                "b",
                "Which category best describes this lesion?",
                CHOOSE,
                options=BEHAVIOUR_OPTIONS,
                answer=BEHAVIOURS.index(line.behaviour),
                provenance={"in_situ": line.in_situ},
            )
        )
    return built


def c(cohort: Cohort, build: Build) -> Built:
    """One item a case with a level; the options are its group's levels, from the lowest in rotation 0."""
    sources, built = _sources(cohort, build), Built()
    for _, case in sources.cases:
        level = sources.level(case)
        if level is None:
            built.dropped["it has no level of a grading group"] += 1
            continue
        group, place = level
        options = sources.ontology.gradings[group].levels
        built.asked.append(
            _asked(
                sources,
                case,
                "c",
                "Determine the grade of this lesion.",
                CHOOSE,
                options=options,
                answer=place,
                strata={"grading": group},
                provenance={"level": place},
            )
        )
    return built


def r1(cohort: Cohort, build: Build) -> Built:
    """One item a case and level that has statements, which stand in a seeded order."""
    sources, built = _sources(cohort, build), Built()
    groups = by_item(sources.statements)
    for _, case in sources.cases:
        levels = [level for level in ("low", "high", None) if (case.case_id, level) in groups]
        if not levels:
            built.dropped["it has no statements"] += 1
        for level in levels:
            item_id = _item_id("r1", case, level or "case")
            order = in_base_order([each for _, each in groups[case.case_id, level]], item_id, build.seed)
            about, begins = TOLD[level]
            listed = [f"{place}. {begins}{each.statement}" for place, each in enumerate(order, start=1)]
            question = "\n".join(
                [f"Judge whether each of the following four statements about the {about} is true or false:", *listed]
            )
            built.asked.append(
                _asked(
                    sources,
                    case,
                    "r1",
                    question,
                    JUDGE,
                    item_id=item_id,
                    answer={"answers": [each.true for each in order]},
                    strata={"level": level or "case"},
                    provenance={"basis": [each.basis for each in order], "span": [each.span for each in order]},
                )
            )
    return built


def g1(cohort: Cohort, build: Build) -> Built:
    """One item a case of several fields, for one finding that stands at one field only; names are taken out of it."""
    sources, built = _sources(cohort, build), Built()
    for _, case in sources.cases:
        shown, item_id = case.shown(), _item_id("g1", case)
        named = [_unnamed(field, case, sources.ontology) for field in shown]
        tied = [place for place, text in enumerate(named) if text is not None and named.count(text) == 1]
        if len(shown) < 2 or not tied:
            built.dropped["no caption ties a finding to one of several fields"] += 1
            continue
        place = in_base_order(tied, item_id, build.seed)[0]
        built.asked.append(
            _asked(
                sources,
                case,
                "g1",
                f'Which image shows this finding: "{named[place]}"?',
                CHOOSE,
                options=[f"Image {number}" for number in range(1, len(shown) + 1)],
                answer=place,
                strata={"images": str(len(shown))},
            )
        )
    return built


def _unnamed(field: CaseField, case: CaseLine, ontology: Ontology) -> str | None:
    """A field's finding without the names of the case's entity, as it is quoted; None where nothing is left."""
    if field.finding is None:
        return None
    names = [name for entity in (case.entity, *case.alternates) for name in ontology.names(entity)]
    text = without_names(field.finding, names, "the lesion").strip().rstrip(".")
    rest = re.sub(r"\bthe lesion\b", "", text)
    return text if any(map(str.isalpha, rest)) else None


# -- what all have in common -----------------------------------------------------------------------------------------


def _sources(cohort: Cohort, build: Build) -> Sources:
    if not (cohort.root / CASES).exists():
        raise InvalidArgumentError(
            f"cohort {cohort.name!r} has no {CASES}; such items are built from cases and an ontology beside it."
        )
    return load_sources(cohort.root, build.seed)


def _item_id(task: str, case: CaseLine, part: str = "") -> str:
    return hashlib.sha256(f"{task}\0{case.case_id}\0{part}".encode()).hexdigest()[:12]


def _asked(
    sources: Sources,
    case: CaseLine,
    task: str,
    question: str,
    answer_format: AnswerFormat,
    *,
    answer: Any,
    item_id: str | None = None,
    options: Sequence[str] = (),
    accepted: Sequence[Any] = (),
    strata: dict[str, str | float | None] | None = None,
    provenance: dict[str, Any] | None = None,
) -> Asked:
    line, count = sources.ontology.entities[case.entity], len(case.fields)
    group = {"patient": case.patient_id, "case": case.case_id, "source": case.source}
    item_id = item_id or _item_id(task, case)
    item = EvidenceItem(
        item_id=item_id,
        suite=SUITE,
        task=task,
        question=question,
        answer=answer_format,
        options=tuple(options),
        images=tuple(field.image for field in case.shown()),
        evidence=WORDS[case.unit],
        metadata=Metadata(site=case.site),
        group={name: value for name, value in group.items() if value is not None},
        split=case.split,
    )
    known: dict[str, str | float | None] = {
        "fields": "1" if count == 1 else "2" if count == 2 else "3-5" if count < 6 else "6+",
        "behaviour": line.behaviour,
        "he": line.he,
        "system": sources.systems(case)[0],
    }
    reference = EvidenceReference(
        item_id=item_id,
        answer=answer,
        accepted=tuple(accepted),
        strata=known | (strata or {}),
        provenance={"case": case.case_id, "entity": case.entity, **(provenance or {})},
    )
    return Asked(item, reference)


def _grading_table(ontology: Ontology) -> str:
    """What grading a diagnosis needs of the ontology: a JSON list, an entity on each line."""
    known = [
        KnownEntity(**{name: getattr(line, name) for name in KnownEntity.model_fields})
        for line in ontology.entities.values()
    ]
    return "[\n" + ",\n".join(each.model_dump_json(exclude_defaults=True) for each in known) + "\n]\n"
