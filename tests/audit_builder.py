"""A cohort of items that cannot be answered without looking, and one leak of each kind to plant in it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from cohort_builder import write_lines
from PIL import Image, PngImagePlugin

SUITE, TASK = "test", "choice"

PATIENTS, EACH = 60, 4

WORDS = tuple(
    word
    for line in (
        "gland duct lobule crypt villus stroma capsule septum vessel nerve margin lumen nest cord sheet trabecula",
        "papilla follicle nucleus nucleolus mitosis chromatin cytoplasm granule vacuole mucin keratin collagen",
    )
    for word in line.split()
)

Line = dict[str, Any]


@dataclass
class Suite:
    """The lines of the items and of their references, in the same order, and the cohort's folder."""

    folder: Path
    items: list[Line]
    references: list[Line]

    def write(self) -> Path:
        for kind, lines in (("items", self.items), ("references", self.references)):
            (self.folder / kind / SUITE).mkdir(parents=True, exist_ok=True)
            write_lines(self.folder / kind / SUITE / f"{TASK}.jsonl", lines)
        return self.folder

    def key(self, number: int) -> int:
        return int(self.references[number]["answer"])

    def replace_option(self, number: int, place: int, text: str) -> None:
        self.items[number]["options"][place] = text

    def image(self, number: int) -> Path:
        return self.folder / self.items[number]["images"][0]["file"]

    def of_split(self, split: str) -> list[int]:
        return [number for number, item in enumerate(self.items) if item["split"] == split]


def picture(seed: int, side: int = 96) -> Image.Image:
    """Coloured clouds, each seed's unlike the others'."""
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    return Image.fromarray(cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC))


def clean_suite(folder: Path, seed: int = 0, *, images: bool = True) -> Suite:
    """60 patients with four items each: four options of two words by lot, the key at a place by lot."""
    lot = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cohort.json").write_text(json.dumps({"format": "wsigym-cohort/1", "name": "audited", "slides": []}))
    (folder / "images").mkdir(exist_ok=True)
    items, references = [], []
    for patient in range(PATIENTS):
        for number in range(patient * EACH, (patient + 1) * EACH):
            file = f"images/{number:04}.png"
            if images:
                picture(1000 * seed + number).save(folder / file)
            options: set[str] = set()
            while len(options) < 4:
                options.add(" beside ".join(lot.sample(WORDS, 2)))
            items.append(
                {
                    "item_id": f"i{number:04}",
                    "suite": SUITE,
                    "task": TASK,
                    "question": f"What lies in field {number:04}, marked {lot.choice(WORDS)} {lot.choice(WORDS)}?",
                    "answer": {"kind": "option", "words": "Answer with one letter."},
                    "options": lot.sample(sorted(options), 4),
                    "images": [{"file": file}] if images else [],
                    "evidence": {"one": "The image shows one field.", "many": "The {count} images show fields."},
                    "group": {"patient": f"p{patient}"},
                    "split": ("train", "train", "train", "val", "test")[patient % 5],
                }
            )
            references.append({"item_id": f"i{number:04}", "answer": lot.randrange(4)})
    return Suite(folder, items, references)


# -- leaks --------------------------------------------------------------------------------------------------------


def longest(suite: Suite) -> None:
    for number, item in enumerate(suite.items):
        if number % 2:
            place = suite.key(number)
            suite.replace_option(number, place, f"{item['options'][place]} beside {WORDS[number % len(WORDS)]}")


def shortest(suite: Suite) -> None:
    for number, item in enumerate(suite.items):
        if number % 2:
            place = suite.key(number)
            suite.replace_option(number, place, item["options"][place].replace("beside", "by"))


def negation(suite: Suite) -> None:
    for number, item in enumerate(suite.items):
        for further in (1, 2):
            wrong = (suite.key(number) + further) % 4
            suite.replace_option(number, wrong, item["options"][wrong].replace("beside", "absent"))


def position(suite: Suite) -> None:
    for number, reference in enumerate(suite.references):
        if number % 2:
            reference["answer"] = 2


def prior(suite: Suite) -> None:
    """Of a closed set of answers as long as each other, one is right more often than it is offered at chance."""
    lot = random.Random(1)
    answers = ["cells", "ducts", "cords", "fibre", "glial", "sinus"]
    for number, item in enumerate(suite.items):
        key = "sinus" if number % 2 else lot.choice(answers)
        options = [key, *lot.sample([answer for answer in answers if answer != key], 3)]
        item["options"] = lot.sample(options, 4)
        suite.references[number]["answer"] = item["options"].index(key)


def question(suite: Suite) -> None:
    """Which of four answers is right follows from a word of the question that is none of theirs."""
    lot = random.Random(1)
    answers = ["gland beside duct", "nest beside cord", "nerve beside vessel", "lumen beside crypt"]
    for number, item in enumerate(suite.items):
        item["options"] = lot.sample(answers, 4)
        right = answers.index(item["options"][suite.key(number)])
        if number % 3:
            item["question"] += f" It was stained in room {('north', 'south', 'east', 'west')[right]}."


def nearest(suite: Suite) -> None:
    for number, item in enumerate(suite.items):
        if number % 2:
            item["question"] += f" Think of {item['options'][suite.key(number)].split()[0]}."


def wording(suite: Suite) -> None:
    """Right options have a word that wrong ones lack."""
    for number, item in enumerate(suite.items):
        if number % 2:
            for place, option in enumerate(item["options"]):
                word = "mainly" if place == suite.key(number) else "partly"
                suite.replace_option(number, place, f"{word} {option}")


def group_in_two_splits(suite: Suite) -> None:
    suite.items[1]["split"] = "test"


def same_text(suite: Suite) -> None:
    """An item again, in another split and patient, its options in another order and its picture a copy."""
    first, other = suite.of_split("train")[0], suite.of_split("test")[0]
    source = suite.items[first]
    suite.items[other] |= {
        "question": source["question"].upper(),
        "options": source["options"][::-1],
        "images": source["images"],
    }
    suite.references[other]["answer"] = 3 - suite.key(first)


def same_image(suite: Suite) -> None:
    first, other = suite.of_split("train")[0], suite.of_split("test")[0]
    with Image.open(suite.image(first)) as image:
        copy = image.transpose(Image.Transpose.ROTATE_90).resize((64, 64))
    path = suite.image(other).with_suffix(".jpg")
    copy.save(path, quality=60)
    suite.items[other]["images"] = [{"file": f"images/{path.name}"}]


def one_image_in_two_splits(suite: Suite) -> None:
    first, other = suite.of_split("train")[0], suite.of_split("test")[0]
    suite.items[other]["images"] = suite.items[first]["images"]


def file_name(suite: Suite) -> None:
    answer = suite.items[7]["options"][suite.key(7)]
    name = f"images/{answer.replace(' ', '_')}-7.png"
    suite.image(7).rename(suite.folder / name)
    suite.items[7]["images"] = [{"file": name}]


def png_text(suite: Suite) -> None:
    told = PngImagePlugin.PngInfo()
    told.add_text("Comment", f"label: {suite.items[7]['options'][suite.key(7)].title()}.", zip=True)
    _saved(suite, 7, pnginfo=told)


def exif(suite: Suite) -> None:
    tags = Image.Exif()
    tags[0x010E] = f"field of {suite.items[7]['options'][suite.key(7)]}"
    _saved(suite, 7, exif=tags)


def xmp(suite: Suite) -> None:
    told = PngImagePlugin.PngInfo()
    text = suite.items[7]["options"][suite.key(7)]
    told.add_itxt("XML:com.adobe.xmp", f"<x:xmpmeta><dc:title>{text}</dc:title></x:xmpmeta>")
    _saved(suite, 7, pnginfo=told)


def site(suite: Suite) -> None:
    suite.items[7]["metadata"] = {"site": suite.items[7]["options"][suite.key(7)]}


def entity_in_group(suite: Suite) -> None:
    suite.references[7]["provenance"] = {"entity": "Warthin tumour"}
    suite.items[7]["group"]["source"] = "archive/WarthinTumour/2"


def _saved(suite: Suite, number: int, **arguments: Any) -> None:
    with Image.open(suite.image(number)) as image:
        image.load()
        image.save(suite.image(number), **arguments)


HIDDEN = "answers beside the question"

Leaks = dict[Callable[[Suite], None], tuple[str, ...]]
"""What each leak is found by, and by nothing else."""

LEAKS_OF_WORDS: Leaks = {
    longest: ("longest", "shortest", "wording"),
    shortest: ("shortest", "wording"),
    negation: ("negation", "prior", "wording"),
    position: ("position",),
    prior: ("prior", "wording"),
    question: ("question",),
    nearest: ("nearest", "wording"),
    wording: ("prior", "wording"),
}

LEAKS: Leaks = {
    group_in_two_splits: ("groups in two splits",),
    same_text: ("same items", "same images"),
    same_image: ("same images",),
    one_image_in_two_splits: ("same images",),
    file_name: (HIDDEN,),
    png_text: (HIDDEN,),
    exif: (HIDDEN,),
    xmp: (HIDDEN,),
    site: (HIDDEN,),
    entity_in_group: (HIDDEN,),
}
