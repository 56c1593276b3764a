from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from casescope_builder import build_casescope, case, entity, ontology, statements

from wsigym.cohorts import Asked, Cohort, load_items
from wsigym.cohorts.builders import BUILDERS, Build, build_items
from wsigym.cohorts.builders.casescope.cases import load_sources
from wsigym.cohorts.builders.casescope.distractors import distractors
from wsigym.cohorts.builders.casescope.tasks import BEHAVIOUR_OPTIONS
from wsigym.cohorts.items import letter
from wsigym.envs.evidence import score_answer, vocabulary_of
from wsigym.envs.item_transforms import Evidence
from wsigym.errors import CohortError, InvalidArgumentError

TASKS = ("a1", "a2", "b", "c", "r1", "g1")


def cases() -> list[dict[str, Any]]:
    return [
        case(0),
        case(1, alternates=["Xalternate"], site=None, count=12),
        case(2, entity="Situ", count=2),
        case(3, entity="Debated", level="Three", unit="disease"),
        case(4, entity="Far", count=1),
    ]


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    told = [*statements(), *statements(level="high"), *statements("zqcase1", None)]
    folder = build_casescope(tmp_path_factory.mktemp("cases"), cases=cases(), told=told)
    for task in TASKS:
        build_items(f"casescope/{task}", Cohort.load(folder), Build())
    return Cohort.load(folder)


def asked_of(cohort: Cohort, task: str) -> dict[str, Asked]:
    """By case."""
    return {each.item.group["case"]: each for each in load_items(cohort, "casescope", task)}


def test_what_is_built_is_sound_and_what_is_not_is_said(cohort: Cohort) -> None:
    assert Cohort.faults_of(cohort.root) == []
    found = {task: BUILDERS[f"casescope/{task}"](cohort, Build()) for task in TASKS}
    assert {task: len(built.asked) for task, built in found.items()} == {
        "a1": 5, "a2": 4, "b": 4, "c": 3, "r1": 3, "g1": 4,
    }  # fmt: skip
    assert [sum(built.dropped.values()) for built in found.values()] == [0, 1, 1, 2, 3, 1]


def test_the_prompt_is_the_papers(cohort: Cohort) -> None:
    item = asked_of(cohort, "a2")["zqcase0"].item
    assert item.text == (
        "The following 3 H&E-stained microscopy images are fields from the same lesion of one case, ordered from low "
        "to high magnification.\nSpecimen site: left knee.\nWhat is the most likely pathological diagnosis?"
    )
    assert "Specimen site" not in asked_of(cohort, "a2")["zqcase1"].item.text
    assert len(asked_of(cohort, "a2")["zqcase1"].item.images) == 8
    assert "fields of one disease" in asked_of(cohort, "a1")["zqcase3"].item.text


def test_distractors_come_by_priority_and_exclusions_hold(cohort: Cohort) -> None:
    sources = load_sources(cohort.root)
    key, other = (line for _, line in list(sources.cases)[:2])
    seen: Counter[str] = Counter()
    for seed in range(30):
        drawn = distractors(sources, key, seed)
        assert drawn is not None
        assert len({one.entity for one in drawn}) == 9
        assert [(one.entity, one.look_alike) for one in drawn[:1]] == [("Twin", True)]
        seen.update(one.entity for one in drawn)
        tiers = {one.entity: one.priority for one in drawn}
        wanted = {"Twin": 1, "Partner": 1, "F1": 2, "F2": 2, "Xalternate": 2, "S1": 3, "S2": 4, "S3": 5}
        assert {name: tiers[name] for name in wanted} == wanted
        assert sum(one.same_family for one in drawn) == 4
        refused = {one.entity for one in distractors(sources, other, seed) or ()}
        assert "Xalternate" not in refused
        assert not {"Key", "Xgroup", "Xparent", "Xsubtype", "Xsibling", "Debated", "Far"} & set(tiers)
    # Situ is of the family; S2 of system and lineage, S3 of the system; one or none of the six is left to the lineage.
    assert {"Situ", "S2", "S3"} <= seen.keys()
    assert seen["Situ"] == seen["S2"] == seen["S3"] == 30


def test_a_look_alike_goes_before_all_unless_it_is_excluded(tmp_path: Path) -> None:
    lines = ontology()
    lines[0] = lines[0] | {"look_alikes": ["Far", "Xgroup", *(f"L{n}" for n in range(6))]}
    build_casescope(tmp_path, entities=lines, told=[])
    sources = load_sources(tmp_path)
    drawn = distractors(sources, sources.cases[0][1], 0)
    assert drawn is not None
    assert {one.entity for one in drawn if one.look_alike} == {"Far", *(f"L{n}" for n in range(6))}
    assert drawn[6].priority == 1 == drawn[7].priority


def test_the_reference_of_a2_logs_each_priority_and_look_alike(cohort: Cohort) -> None:
    each = asked_of(cohort, "a2")["zqcase0"]
    options, known = each.item.options, each.reference.provenance
    assert len(options) == 10
    assert options[each.reference.answer] == "Key"
    assert known["look_alikes"] == ["Twin"]
    priorities = known["priorities"]
    assert {"Key", *priorities} == set(options)
    assert (priorities["Partner"], priorities["F1"], priorities["S1"]) == (1, 2, 3)
    strata = each.reference.strata
    assert (strata["same_family"], strata["fields"], strata["he"], strata["system"]) == ("3-5", "3-5", "Y", "skin")
    assert [asked_of(cohort, "a1")[f"zqcase{n}"].reference.strata["fields"] for n in range(5)] == [
        "3-5", "6+", "2", "3-5", "1",
    ]  # fmt: skip


def test_triage_has_four_fixed_options_and_leaves_debated_codes_out(cohort: Cohort) -> None:
    asked = asked_of(cohort, "b")
    assert "zqcase3" not in asked
    assert {each.item.options for each in asked.values()} == {BEHAVIOUR_OPTIONS}
    assert [asked[f"zqcase{n}"].reference.answer for n in (0, 2, 4)] == [3, 2, 0]
    assert [asked[f"zqcase{n}"].reference.provenance["in_situ"] for n in (0, 2)] == [False, True]


def test_grading_offers_all_levels_in_order(cohort: Cohort) -> None:
    asked = asked_of(cohort, "c")
    assert {name: each.reference.answer for name, each in asked.items()} == {"zqcase0": 1, "zqcase1": 1, "zqcase3": 2}
    assert asked["zqcase0"].item.options == ("One", "Two", "Three")


def test_statements_stand_in_a_seeded_order_with_their_truth(cohort: Cohort) -> None:
    truth = {line["statement"]: line["true"] for line in statements()}
    for each in load_items(cohort, "casescope", "r1"):
        level = each.reference.strata["level"]
        begins = {"low": "At low power, ", "high": "At high power, ", "case": ""}[str(level)]
        _, *lines = each.item.question.splitlines()
        told = [line.removeprefix(f"{place}. {begins}") for place, line in enumerate(lines, start=1)]
        assert [truth[text] for text in told] == each.reference.answer["answers"]
        assert len(each.item.images) == 3 if level != "case" else 8


def test_a_finding_is_asked_for_without_the_name(cohort: Cohort) -> None:
    for each in asked_of(cohort, "g1").values():
        assert each.item.options == tuple(f"Image {n}" for n in range(1, len(each.item.images) + 1))
        place = each.reference.answer
        assert f'"Finding {place} of the' in each.item.question
        if each.reference.provenance["entity"] == "Key":
            assert f'"Finding {place} of the the lesion"' in each.item.question
    with pytest.raises(InvalidArgumentError, match="options away"):
        Evidence.of("highest-power").of_item(each.item)


def test_every_item_proves_itself(cohort: Cohort) -> None:
    for task in TASKS:
        asked = load_items(cohort, "casescope", task)
        table = vocabulary_of(cohort, "casescope", asked)
        for each in asked:
            kind, right = each.item.answer.kind, each.reference.answer
            wrong: list[Any]
            if kind == "option":
                said, wrong = letter(right), [letter(n) for n in range(len(each.item.options)) if n != right]
            elif kind == "json":
                said, wrong = json.dumps(right), [json.dumps({"answers": [not told for told in right["answers"]]})]
            else:
                said = json.dumps({**right, "differential": ["x", "y"], "confidence": 80})
                wrong = [json.dumps({"diagnosis": name}) for name in ("S3", "nothing known", "")] + ["Key"]
            assert score_answer(each.item, each.reference, said, table).value == 1
            for text in wrong:
                assert score_answer(each.item, each.reference, text, table).value == 0


@pytest.mark.parametrize(
    ("case_id", "diagnosis", "grade", "error"),
    [
        ("zqcase0", "Keyword tumour", 1, "exact"),
        ("zqcase0", "most likely a keyword tumour", 1, "exact"),
        ("zqcase0", "Xsubtype", 1, "exact"),
        ("zqcase0", "F1", 0.5, "F"),
        ("zqcase0", "F2", 0, "B"),
        ("zqcase0", "S1", 0, "L"),
        ("zqcase0", "Twin", 0, "W"),
        ("zqcase0", "unheard of", 0, "W"),
        ("zqcase1", "Xalternate", 1, "exact"),
        ("zqcase0", "Xalternate", 0.5, "F"),
    ],
)
def test_free_diagnoses_are_graded_by_the_ontology(
    cohort: Cohort, case_id: str, diagnosis: str, grade: float, error: str
) -> None:
    asked = load_items(cohort, "casescope", "a1")
    each = asked_of(cohort, "a1")[case_id]
    reply = "```json\n" + json.dumps({"diagnosis": diagnosis, "differential": ["S1", "Key"]}) + "\n```"
    score = score_answer(each.item, each.reference, reply, vocabulary_of(cohort, "casescope", asked))
    assert (score.value, score.answer["error"], score.answer["top3"]) == (grade, error, True)


def test_text_alone_changes_the_sentences_on_the_evidence_only(cohort: Cohort) -> None:
    whole = next(each.item for each in load_items(cohort, "casescope", "r1"))
    text = Evidence.of("text").of_item(whole)
    assert text.images == ()
    assert text.text.startswith("The following question concerns H&E-stained sections of one lesion of one case (no")
    assert text.answer.words.startswith("Answer from the text. Output only JSON")
    assert text.text.splitlines()[1:] == whole.text.splitlines()[1:]
    highest = Evidence.of("highest-power").of_item(whole)
    assert highest.text.startswith("The following H&E-stained microscopy image is a field from the lesion of one case.")
    assert highest.answer == whole.answer


@pytest.mark.parametrize("task", ["a1", "a2", "b", "c", "r1"])
def test_without_images_no_instruction_speaks_of_them(cohort: Cohort, task: str) -> None:
    """The instruction's first sentence is replaced, and the rest stays; with fewer images it stays whole, as the
    paper's ablations of evidence leave instructions unchanged (section S6.7)."""
    for each in load_items(cohort, "casescope", task):
        words, text = each.item.answer.words, Evidence.of("text").of_item(each.item).answer.words
        assert words.startswith("Integrate all images")
        assert text.startswith("Answer from the text")
        assert "image" not in text
        assert text.removeprefix("Answer from the text") == words.removeprefix("Integrate all images").removeprefix(
            " and answer"
        )
        for evidence in ("highest-power", "no-site", "mosaic"):
            assert Evidence.of(evidence).of_item(each.item).answer == each.item.answer


def test_ids_tell_nothing_and_the_seed_builds_the_same(cohort: Cohort) -> None:
    for task in TASKS:
        for each in load_items(cohort, "casescope", task):
            assert "zq" not in each.item.model_dump_json(exclude={"group"})
        first, again, other = (BUILDERS[f"casescope/{task}"](cohort, Build(seed=seed)).asked for seed in (0, 0, 1))
        assert first == again
        if task in ("a2", "r1", "g1"):
            assert first != other


def test_faults_of_the_sources_stop_the_build(tmp_path: Path) -> None:
    build_casescope(tmp_path, entities=[*ontology(), entity("Key")], cases=[case(entity="Nothing")])
    with pytest.raises(CohortError, match=r"ontology.jsonl:\d+: entity: 'Key' is a name of 'Key' on line 1"):
        build_items("casescope/a2", Cohort.load(tmp_path), Build())
    build_casescope(tmp_path, told=[], cases=[case(entity="Far")])
    with pytest.raises(InvalidArgumentError, match="fewer than nine diagnoses"):
        build_items("casescope/a2", Cohort.load(tmp_path), Build())
    (tmp_path / "casescope" / "cases.jsonl").unlink()
    with pytest.raises(InvalidArgumentError, match=r"no casescope/cases\.jsonl"):
        build_items("casescope/a2", Cohort.load(tmp_path), Build())


def test_a_known_entity_that_is_none_is_a_fault_of_the_reference(cohort: Cohort, tmp_path: Path) -> None:
    build_casescope(tmp_path, told=[])
    build_items("casescope/a1", Cohort.load(tmp_path), Build())
    file = tmp_path / "references" / "casescope" / "a1.jsonl"
    file.write_text(file.read_text().replace('"answer": {"diagnosis": "Key"}', '"answer": {"diagnosis": "Kex"}'))
    assert [str(fault) for fault in Cohort.faults_of(tmp_path)] == [
        "references/casescope/a1.jsonl:1: answer: is no entity of the suite's ontology; found {'diagnosis': 'Kex'}"
    ]


def test_a_finding_that_two_fields_have_is_tied_to_neither(tmp_path: Path) -> None:
    twice = case()
    twice["fields"][2]["finding"] = twice["fields"][0]["finding"]
    for number, lines in enumerate(([twice], [twice | {"fields": [twice["fields"][0], twice["fields"][2]]}])):
        build_casescope(tmp_path, cases=lines, told=[])
        built = BUILDERS["casescope/g1"](Cohort.load(tmp_path), Build())
        assert [each.reference.answer for each in built.asked] == [[1], []][number]
