"""Items of EviPathBench tasks 1, 2 and 4 from a cohort's diagnostic trees.

    interpretation   T1: an image, four findings; which does it show?
    verification     T2: a finding, four images; which shows it?
    integration      T4: the three findings of a path, in words; diagnose, triage, refine

The four findings of a set give four items each of T1 and T2, with the same ids in both, so that they can be paired.
Diagnoses are in sets of four too, each the key once, so that none is known for a distractor by its words.

Questions are templates; `Build.reword` may put them into other words. Triage categories come from the path's category
or from key words in its diagnosis; refine asks for one of the five structured fields, drawn by lot among those that can
be asked (the paper's lists of fields differ; all five are accepted). The organ is told where distractors are of the
same organ; elsewhere it would tell the key.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from wsigym.errors import InvalidArgumentError

from ..cohort import Cohort
from ..item_files import Asked
from ..items import AnswerFormat, EvidenceItem, EvidenceWords, ImageSpec, Metadata, TextFinding, in_base_order
from ..models import DiagnosticPath, Node, SlideEntry
from ..references import EvidenceReference
from .building import Build, Built, Evenly
from .encoders import encode
from .mining import SET_SIZE, mine_sets

__all__ = ["CATEGORIES", "REFINE", "category_of", "integration", "interpretation", "verification", "without_prefix"]

SUITE = "evipath"

CHOOSE = AnswerFormat(kind="option", words="Answer with the letter of one option.")

FIELD = EvidenceWords(
    one="The image shows H&E-stained tissue.",
    many="The {count} images show H&E-stained tissue.",
)

_PREFIX = re.compile(
    r"^\s*(?:[\[(]\s*)?(?:at\s+)?\d+(?:\.\d+)?\s*[x\u00d7](?:\s+(?:magnification|objective|view|power))?\s*"
    r"(?:[\])]\s*[:,.\u2013\u2014-]?|[:,\u2013\u2014-])\s*",
    re.IGNORECASE,
)


def without_prefix(finding: str) -> str:
    """A finding without the magnification that it may begin with, such as "40x: ", "[10x] " or "At 2.5x, "."""
    return _PREFIX.sub("", finding).strip() or finding.strip()


# -- T1 and T2 ----------------------------------------------------------------------------------------------------


def interpretation(cohort: Cohort, build: Build) -> Built:
    """T1: each member of a set is the image once; the options are the four findings."""
    return _of_sets(cohort, build, _interpretation_item)


def verification(cohort: Cohort, build: Build) -> Built:
    """T2: each member of a set is the finding once; the options are the four images."""
    return _of_sets(cohort, build, _verification_item)


_MakeItem = Callable[[str, str, Node, Sequence[Node], SlideEntry, Build], EvidenceItem]
"""From the item's id, its set's id, the key, the four members in the order shown, and the key's slide."""


def _of_sets(cohort: Cohort, build: Build, make: _MakeItem) -> Built:
    entries = {entry.slide_id: entry for entry in cohort.slides}
    nodes = [node for node in cohort.nodes if any(map(str.isalpha, without_prefix(node.finding)))]
    if not nodes:
        raise InvalidArgumentError(f"cohort {cohort.name!r} has no node with a finding in words; such items need them.")
    vectors = encode(build.encoder, [without_prefix(node.finding) for node in nodes])
    cells = [build.cell_of(_values(entries[node.slide_id]) | {"magnification": node.magnification}) for node in nodes]
    sets = mine_sets(vectors, cells, [_name(node) for node in nodes], seed=build.seed, threshold=build.threshold)
    built, in_cell = Built(), Counter(cells)
    too_few = sum(in_cell[cell] < SET_SIZE for cell in cells)
    for members in sets:
        group = [nodes[row] for row in members]
        set_id = hashlib.sha256(json.dumps([_name(node) for node in group]).encode()).hexdigest()[:12]
        for place, node in enumerate(group):
            item_id = f"{set_id}-{place + 1}"
            order = in_base_order(group, item_id, build.seed)
            entry = entries[node.slide_id]
            built.asked.append(
                Asked(
                    make(item_id, set_id, node, order, entry, build),
                    EvidenceReference(
                        item_id=item_id,
                        answer=order.index(node),
                        strata={"organ": entry.organ},
                        provenance={
                            "nodes": [[each.slide_id, each.node_id] for each in order],
                            "cell": [
                                str(value)
                                for value in build.cell_of(_values(entry) | {"magnification": node.magnification})
                            ],
                            "encoder": build.encoder,
                        },
                    ),
                )
            )
    built.dropped["without a finding in words"] = len(cohort.nodes) - len(nodes)
    built.dropped["fewer than four findings in its cell and split"] = too_few
    built.dropped["in no set of four that are unlike each other"] = len(nodes) - too_few - len(built.asked)
    return built


def _interpretation_item(
    item_id: str, set_id: str, node: Node, order: Sequence[Node], entry: SlideEntry, build: Build
) -> EvidenceItem:
    return EvidenceItem(
        item_id=item_id,
        suite=SUITE,
        task="interpretation",
        question=f"Which of these findings does the image show at {node.magnification:g}x?",
        answer=CHOOSE,
        options=tuple(without_prefix(each.finding) for each in order),
        images=(_image(node),),
        evidence=FIELD,
        metadata=Metadata(organ=_organ(entry, build), magnification=node.magnification),
        group=_group(entry, set_id),
        set_id=set_id,
        split=entry.split,
    )


def _verification_item(
    item_id: str, set_id: str, node: Node, order: Sequence[Node], entry: SlideEntry, build: Build
) -> EvidenceItem:
    return EvidenceItem(
        item_id=item_id,
        suite=SUITE,
        task="verification",
        question=f'Which image shows this finding at {node.magnification:g}x: "{_finding(node)}"?',
        answer=CHOOSE,
        options=tuple(f"Image {number + 1}" for number in range(SET_SIZE)),
        images=tuple(map(_image, order)),
        evidence=FIELD,
        metadata=Metadata(organ=_organ(entry, build), magnification=node.magnification),
        group=_group(entry, set_id),
        set_id=set_id,
        split=entry.split,
    )


def _finding(node: Node) -> str:
    return without_prefix(node.finding).rstrip(" .")


def _image(node: Node) -> ImageSpec:
    return ImageSpec(slide_id=node.slide_id, box=node.box, magnification=node.magnification)


def _name(node: Node) -> str:
    return f"{node.slide_id}\0{node.node_id}"


def _values(entry: SlideEntry) -> dict[str, object]:
    return {"split": entry.split, "organ": entry.organ}


def _organ(entry: SlideEntry, build: Build) -> str | None:
    return entry.organ if "organ" in build.cell else None


def _group(entry: SlideEntry, set_id: str) -> dict[str, str]:
    group = {"patient": entry.patient_id, "slide": entry.slide_id, "set": set_id}
    return {name: value for name, value in group.items() if value is not None}


# -- T4 -----------------------------------------------------------------------------------------------------------

CATEGORIES = (
    "Malignant primary or metastatic tumour",
    "In situ or precursor lesion",
    "Benign tumour or tumour-like lesion",
    "Inflammatory, reactive or normal tissue",
)
"""The options of triage, always these four."""

_WORDS = (
    re.compile(
        r"malignan|(?<!pre)(?<!non-)invasive|carcinoma|sarcoma|lymphoma|melanoma|leuk|metasta|glioma|glioblastoma|"
        r"blastoma|myeloma|mesothelioma|seminoma|thymoma|adenocarcinoma|cancer"
    ),
    re.compile(r"in situ|in-situ|intraepithelial|dysplas|precursor|premalignant|borderline|atypical hyperplasia"),
    re.compile(
        r"benign|na?evus|hyperplasia|adenoma(?!tous)|fibroadenoma|papilloma|lipoma|h(?:a)?emangioma|leiomyoma|polyp|cyst|"
        r"hamartoma"
    ),
    re.compile(r"inflamm|reactive|normal|granulom|abscess|fibrosis|non-neoplastic|nonneoplastic|\w+itis\b|infarct"),
)
"""Key words of each category in its order (this project's; the paper's categories come from a language model)."""

_DENIED = re.compile(r"\b(?:no|without|negative for|absence of|free of)\b[^,.;]*")

REFINE = {
    "subtype": "Which subtype do these findings support?",
    "invasion": "Which statement on invasion do these findings support?",
    "grade": "Which grade do these findings support?",
    "marker": "Which statement on markers do these findings support?",
    "morphology": "Which morphology do these findings support?",
}
"""The fields that refine asks for, and how."""


def category_of(diagnosis: str, category: str | None) -> int | None:
    """The place among `CATEGORIES` of a path, by its category where it has one, else by its diagnosis; None if unclear.

    A word of a precursor ("carcinoma in situ") goes before one of malignancy; otherwise words of two categories are
    unclear. What is denied ("no evidence of carcinoma") does not count.
    """
    text = _DENIED.sub(" ", (category or diagnosis).casefold())
    found = [place for place, words in enumerate(_WORDS) if words.search(text)]
    if 1 in found and set(found) <= {0, 1, 2}:
        return 1
    return found[0] if len(found) == 1 else None


def integration(cohort: Cohort, build: Build) -> Built:
    """T4: three items a path where they can be asked: diagnose, triage, refine. Of paths that read alike, one."""
    known = [path for path in cohort.paths if len(path.node_ids) > 1]
    if not known:
        raise InvalidArgumentError(f"cohort {cohort.name!r} has no path of several nodes; such items need paths.jsonl.")
    entries = {entry.slide_id: entry for entry in cohort.slides}
    nodes = {(node.slide_id, node.node_id): node for node in cohort.nodes}
    built = Built()
    read = {
        _name_of(path): tuple(
            TextFinding(magnification=node.magnification, text=without_prefix(node.finding))
            for node in (nodes[path.slide_id, node_id] for node_id in path.node_ids)
        )
        for path in known
    }
    paths = _read_once(known, read, [_organ(entries[path.slide_id], build) for path in known], built)
    cell_of = [build.cell_of(_values(entries[path.slide_id])) for path in paths]
    diagnoses = _diagnoses(paths, cell_of, build)
    values, evenly = _values_by_cell(paths, cell_of), defaultdict[tuple[object, str], Evenly](Evenly)
    for place, path in enumerate(paths):
        findings = read[_name_of(path)]
        digest = hashlib.sha256(_name_of(path).encode()).hexdigest()[:12]
        asked = {
            "diagnose": ("Which diagnosis do these findings support?", diagnoses.get(place)),
            "triage": ("Which category do these findings support?", _triage_options(path)),
            "refine": _refine(path, cell_of[place], values, evenly, build.seed),
        }
        for kind, (question, options) in asked.items():
            if options is None:
                built.dropped[f"{kind}: {_WHY[kind]}"] += 1
                continue
            item_id = f"{digest}-{kind}"
            order = in_base_order(options, item_id, build.seed)
            entry = entries[path.slide_id]
            item = EvidenceItem(
                item_id=item_id,
                suite=SUITE,
                task="integration",
                question=question,
                answer=CHOOSE,
                options=tuple(order),
                findings=findings,
                metadata=Metadata(organ=_organ(entry, build)),
                group=_group(entry, digest),
                set_id=digest,
                split=entry.split,
            )
            provenance = {"slide": path.slide_id, "path": path.path_id, "encoder": build.encoder}
            reference = EvidenceReference(
                item_id=item_id,
                answer=order.index(options[0]),
                strata={"organ": entry.organ, "type": kind},
                provenance=provenance,
            )
            built.asked.append(Asked(item, reference))
    return built


_WHY = {
    "diagnose": "in no set of four diagnoses of the cell that are unlike each other",
    "triage": "its category is unclear",
    "refine": "no field has three other values in the cell",
}


def _name_of(path: DiagnosticPath) -> str:
    return f"{path.slide_id}\0{path.path_id}"


def _read_once(
    paths: Sequence[DiagnosticPath],
    read: Mapping[str, Sequence[TextFinding]],
    organs: Sequence[str | None],
    built: Built,
) -> list[DiagnosticPath]:
    """The first of the paths that read alike; none of them where they do not say the same of it."""
    alike: dict[object, list[DiagnosticPath]] = {}
    for path, organ in zip(paths, organs, strict=True):
        shown = tuple((finding.magnification, _folded(finding.text)) for finding in read[_name_of(path)])
        alike.setdefault((organ, shown), []).append(path)
    kept = []
    for group in alike.values():
        if len({(_folded(path.diagnosis), path.category, tuple(_details(path).items())) for path in group}) > 1:
            built.dropped["paths whose findings read as another's, which is not diagnosed the same"] += len(group)
            continue
        kept.append(group[0])
        built.dropped["paths whose findings read as another's, which is kept"] += len(group) - 1
    return kept


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _diagnoses(
    paths: Sequence[DiagnosticPath], cells: Sequence[tuple[object, ...]], build: Build
) -> dict[int, list[str]]:
    """By place of path: its own diagnosis and three others, in sets of paths as those of T1, each the key once.

    If three others were chosen for each path alone, those that are unlike most would stand beside nearly all, and an
    option that is not one of them would be the key.
    """
    texts = [path.diagnosis.strip() for path in paths]
    unique = sorted(set(texts))
    row_of = {text: row for row, text in enumerate(unique)}
    vectors = encode(build.encoder, unique)[[row_of[text] for text in texts]]
    sets = mine_sets(vectors, cells, [_name_of(path) for path in paths], seed=build.seed, threshold=build.threshold)
    return {
        place: [texts[place], *(texts[other] for other in members if other != place)]
        for members in sets
        for place in members
    }


def _triage_options(path: DiagnosticPath) -> list[str] | None:
    key = category_of(path.diagnosis, path.category)
    return None if key is None else [CATEGORIES[key], *(name for name in CATEGORIES if name != CATEGORIES[key])]


def _values_by_cell(paths: Sequence[DiagnosticPath], cells: Sequence[object]) -> dict[object, dict[str, list[str]]]:
    """The values of each field in each cell, once each whatever their case."""
    found: dict[object, dict[str, dict[str, str]]] = {}
    for path, cell in zip(paths, cells, strict=True):
        of_cell = found.setdefault(cell, {name: {} for name in REFINE})
        for name, value in _details(path).items():
            of_cell[name].setdefault(value.casefold(), value)
    return {cell: {name: sorted(values.values()) for name, values in fields.items()} for cell, fields in found.items()}


def _details(path: DiagnosticPath) -> dict[str, str]:
    values = {name: (getattr(path.details, name) or "").strip() for name in REFINE}
    return {name: value for name, value in values.items() if value}


def _refine(
    path: DiagnosticPath,
    cell: object,
    values: Mapping[object, Mapping[str, Sequence[str]]],
    evenly: Mapping[tuple[object, str], Evenly],
    seed: int,
) -> tuple[str, list[str] | None]:
    """A field by lot among those with three other values in the cell, which are drawn evenly, else by lot too."""
    for field in in_base_order(sorted(_details(path)), _name_of(path), seed):
        own = _details(path)[field]
        others = [value for value in values[cell][field] if value.casefold() != own.casefold()]
        if len(others) >= SET_SIZE - 1:
            order = in_base_order(others, f"{_name_of(path)}\0{field}", seed)
            return REFINE[field], [own, *evenly[cell, field].draw(own, order, SET_SIZE - 1)]
    return "", None
