from __future__ import annotations

from typing import Any

import pytest
from evidence_builder import item, reference
from hypothesis import given
from hypothesis import strategies as st

from wsigym.cohorts import EvidenceItem, EvidenceReference
from wsigym.envs.item_transforms import Evidence, rotated, rotated_reference
from wsigym.errors import InvalidArgumentError

FINDINGS = [
    {"magnification": 2.5, "text": "a mass"},
    {"magnification": 10, "text": "sheets"},
    {"magnification": 40, "text": "mitoses"},
]

SPECS = st.builds(
    lambda keep, site, mosaic: ",".join(filter(None, [keep, site, "" if keep == "text" else mosaic])) or "all",
    st.sampled_from(
        ["", "text", "highest-power", "2.5x", "10x", "40x", "2.5x+10x", "2.5x+40x", "10x+40x", "2.5x+10x+40x"]
    ),
    st.sampled_from(["", "no-site"]),
    st.sampled_from(["", "mosaic"]),
)


def made(**changes: Any) -> EvidenceItem:
    return EvidenceItem.model_validate(item(**{"findings": FINDINGS, **changes}))


def shown(evidence: str, **changes: Any) -> EvidenceItem:
    return Evidence.of(evidence).of_item(made(**changes))


def test_all_is_the_item_itself() -> None:
    assert shown("all") == made()


def test_the_highest_power_is_the_last_image_in_words_for_one() -> None:
    one = shown("highest-power")
    assert one.images == made().images[-1:]
    assert one.text.splitlines() == [
        "The image shows one field.",
        "Specimen site: sigmoid colon.",
        "At 40x: mitoses",
        "Which of these is seen (0)?",
    ]


def test_a_subset_keeps_images_and_findings_at_its_magnifications() -> None:
    two = shown("40x+2.5x")
    assert [image.magnification for image in two.images] == [2.5, 40]
    assert "The 2 images show fields of one case." in two.text
    assert "sheets" not in two.text
    with pytest.raises(InvalidArgumentError, match=r"no evidence at 5x; it has 2.5x, 10x, 40x"):
        shown("5x")


def test_text_alone_says_so_and_keeps_what_is_told_in_words() -> None:
    text = shown("text")
    assert text.images == ()
    assert text.text.splitlines()[0] == "No image is shown: answer from the text."
    assert "At 10x: sheets" in text.text
    assert Evidence.of("text").of_item(made(images=[], evidence=None)).text == made(images=[], evidence=None).text


def test_text_alone_is_without_features_too() -> None:
    files = {"features": "f.npy", "coordinates": "c.npy"}
    assert shown("text", features=files).features is None
    assert shown("no-site", features=files).features == made(features=files).features


def test_without_site_neither_site_nor_organ_is_told() -> None:
    blind = shown("no-site")
    assert "colon" not in blind.text
    assert blind.metadata.model_dump(exclude_none=True) == {"magnification": 10}


def test_a_mosaic_is_one_image_that_says_so() -> None:
    mosaic = shown("mosaic")
    (image,) = mosaic.images
    assert image.tiles == made().images
    first = mosaic.text.splitlines()[0]
    assert first == (
        "The 3 images show fields of one case. They are shown in one image, numbered 1 to 3 in reading order."
    )
    own = {**item()["evidence"], "mosaic": "A mosaic of {count} fields (1-{count})."}
    assert Evidence.of("mosaic").of_item(made(evidence=own)).text.startswith("A mosaic of 3 fields (1-3).\n")
    assert made(evidence=own).text == made().text
    assert shown("mosaic", images=item()["images"][:1]) == made(images=item()["images"][:1])


def test_images_that_are_options_cannot_be_taken_away() -> None:
    options = ["Image 3", "Image 1", "Image 2"]
    for evidence in ("text", "highest-power", "10x"):
        with pytest.raises(InvalidArgumentError, match="asks for one of its images"):
            shown(evidence, options=options)
    assert shown("mosaic", options=options).options == tuple(options)


@given(spec=SPECS)
def test_only_the_evidence_and_its_sentences_change(spec: str) -> None:
    whole, part = made(), shown(spec)
    changed = {name for name in EvidenceItem.model_fields if getattr(whole, name) != getattr(part, name)}
    assert changed <= {"images", "findings", "metadata"}
    assert set(part.findings) <= set(whole.findings)
    assert {tile for image in part.images for tile in image.parts} <= set(whole.images)
    told = set(whole.text.splitlines()) | {"The image shows one field.", "No image is shown: answer from the text."}
    for line in part.text.splitlines():
        assert line in told or line.startswith(("The 2 images show", "The 3 images show"))
    assert part.text.splitlines()[-1] == whole.question


@given(spec=SPECS)
def test_a_label_is_the_one_spelling(spec: str) -> None:
    evidence = Evidence.of(spec)
    assert Evidence.of(evidence.label) == evidence
    assert Evidence.of(",".join(reversed(evidence.label.split(",")))) == evidence


@pytest.mark.parametrize(
    "spec", ["", "half", "10", "text,10x", "all,no-site", "no-site,no-site", "text,mosaic", "10x+", "highest-power,10x"]
)
def test_other_evidence_is_refused(spec: str) -> None:
    with pytest.raises(InvalidArgumentError, match="evidence"):
        Evidence.of(spec)


@given(key=st.integers(0, 9), count=st.integers(2, 10))
def test_over_all_rotations_the_key_is_in_each_place_once_and_its_text_the_same(key: int, count: int) -> None:
    key %= count
    asked = made(options=[f"o{place}" for place in range(count)])
    answer = EvidenceReference.model_validate(reference(answer=key, accepted=[(key + 1) % count]))
    places = []
    for rotation in range(count):
        turned, turned_answer = rotated(asked, rotation), rotated_reference(answer, asked, rotation)
        assert turned.options[turned_answer.answer] == asked.options[key]
        assert turned.options[turned_answer.accepted[0]] == asked.options[(key + 1) % count]
        assert turned.options == asked.options[rotation:] + asked.options[:rotation]
        assert turned.images == asked.images
        assert turned.text == asked.text
        places.append(turned_answer.answer)
    assert sorted(places) == list(range(count))


def test_rankings_turn_and_other_answers_stay() -> None:
    asked = made(answer={"kind": "ranking", "words": "Rank."})
    answer = EvidenceReference(item_id="i0", answer=[2, 0, 1, 3])
    assert rotated_reference(answer, asked, 1).answer == [1, 3, 0, 2]
    number = made(answer={"kind": "number", "words": "Count."})
    assert rotated_reference(EvidenceReference(item_id="i0", answer=7), number, 1).answer == 7


def test_a_rotation_beyond_the_options_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="allowed are 0 to 3"):
        rotated(made(), 4)
    with pytest.raises(InvalidArgumentError, match="allowed are 0 to 0"):
        rotated(made(options=[], answer={"kind": "number", "words": "Count."}), 1)
