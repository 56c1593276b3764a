"""CaseScope's sources of a synthetic cohort: a case a lesion, its fields cut from the slide, statements on it.

What is written follows from the cohort's trees and paths alone; the ontology is that of `ontology.jsonl` beside this
file. Cases of patients in turn are of two collections. No question is to be answered by its words:

    - of an organ's entities none has more cases than the rarest and one, else the commonest would be the answer
    - a statement says which of the entity's structures is drawn, or is not; the lot of the slide decided which
    - a finding is tied to one of several fields of one power, else its words would tell the power, and so the field
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ..builders.casescope.cases import CASES, STATEMENTS
from ..builders.casescope.ontology import ONTOLOGY, GradingGroup, read_ontology
from ..cohort import Cohort
from ..items import in_base_order
from ..models import DiagnosticPath, Node, SlideEntry
from .entities import ENTITIES, FOCI, NESTS, Entity
from .findings import kind_of

__all__ = ["FOCI_TOLD", "NESTS_TOLD", "write_casescope"]

COLLECTIONS = ("teaching", "atlas")

SITES = {
    "breast": "upper outer quadrant",
    "colon": "sigmoid",
    "kidney": "upper pole",
    "liver": "segment VI",
    "lung": "right upper lobe",
    "prostate": "peripheral zone",
    "skin": "forearm",
}
"""Where a specimen is from, in words that stand in no diagnosis' name, as such a name would be told by its site."""

NESTS_TOLD = {
    "solid": ("a denser spot is one sheet of cohesive cells", "cells lie edge to edge all over a denser spot"),
    "crowded-glands": ("glands stand back to back in a denser spot", "a denser spot has angulated lumens side by side"),
    "cribriform": ("a denser spot is pierced like a sieve", "round holes are punched out of a denser spot"),
    "nests": ("a denser spot is a jigsaw of small cell islands", "thin septa part the islands of a denser spot"),
    "files": ("rows one cell wide make up a denser spot", "a denser spot is striped by single-file cords"),
    "trabeculae": ("thick plates of cells make up a denser spot", "slit-like spaces part the plates of a denser spot"),
    "duct-solid": ("a widened duct is stuffed solid with cells", "a large round space is filled to its rim"),
    "duct-cribriform": ("a widened duct is bridged into a sieve", "a large round space is crossed by rigid bars"),
    "follicle": ("a dark mantle encloses the core of a nodule", "a lymphoid nodule has a germinal centre"),
    "cuff": ("small dark cells form a sleeve around a vessel", "lymphocytes are wrapped densely around a vessel"),
    "granuloma": ("a pale rounded nodule is rimmed by lymphocytes", "epithelioid cells form a rounded pale nodule"),
}
"""What is seen of a lesion at low power, by the kind of its nests."""

FOCI_TOLD = {
    "pleomorphic": ("bizarre nuclei with coarse chromatin lie in a group", "clustered nuclei vary wildly in shape"),
    "mitoses": ("several mitotic figures lie close together", "dark chromosome plates stand in cleared cytoplasm"),
    "giant": ("monstrous nuclei tower over their neighbours", "a few giant nuclei lie among smaller atypical ones"),
    "necrosis": ("pink granular debris is ringed by viable cells", "nuclear dust is strewn over a dead pink area"),
    "comedo": ("necrotic debris plugs the centre of a duct", "dark nuclear dust lies within a central pink plug"),
    "embolus": ("a compact cell plug floats in a thin-walled cleft", "a vascular space holds a clump of cells"),
    "rosette": ("tiny fused glands share their walls with others", "heaped nuclei surround several minute lumens"),
    "calcification": ("laminated purple concretions are present", "dark blue bodies are made of concentric rings"),
    "compact": ("one small ball of cells is packed tightest of all", "a tight little knot of bland nuclei stands out"),
    "cyst": ("a dilated gland is filled with pink secretion", "flat lining surrounds a pool of pink fluid"),
    "apoptosis": ("shrunken cells with dark fragments have clear halos", "apoptotic bodies dot the crowded nuclei"),
    "plasma": ("plasma cells are packed into a small sheet", "eccentric cartwheel nuclei lie side by side"),
    "giant-cell": ("a giant cell has a wreath of many nuclei", "nuclei ring the pink body of one huge cell"),
    "abscess": ("a dense pocket holds fragmented neutrophils", "pink exudate is peppered with broken nuclei"),
}
"""What is seen of a lesion at high power, by the kind of its foci. A knot of lymphocytes is not told of: they gather
where nothing is annotated too."""


ENTITY_OF = {entity.diagnosis: entity for entities in ENTITIES.values() for entity in entities}


def write_casescope(folder: Path) -> None:
    """Write `casescope/ontology.jsonl`, `cases.jsonl` and `statements.jsonl` for the synthetic cohort in `folder`."""
    (folder / "casescope").mkdir()
    text = (resources.files("wsigym.cohorts.synthetic") / "ontology.jsonl").read_text("utf-8")
    (folder / ONTOLOGY).write_text(text, encoding="utf-8")
    gradings = read_ontology(folder)[0].gradings
    grading_of = {
        line["entity"]: line.get("grading") for line in map(json.loads, text.splitlines()) if "entity" in line
    }
    cases: list[dict[str, Any]] = []
    statements: list[dict[str, Any]] = []
    for lesion in _thinned(list(_lesions(Cohort.load(folder)))):
        case = lesion.case()
        grading = grading_of[case["entity"]]
        if grading is not None:
            case["level"] = _level(lesion.paths, gradings[grading])
        cases.append(case)
        statements += lesion.statements()
    for name, lines in ((CASES, cases), (STATEMENTS, statements)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@dataclass(frozen=True)
class _Lesion:
    """A lesion: its slide, the patient's collection, its nodes in the order of its paths, and the paths."""

    entry: SlideEntry
    collection: str
    nodes: tuple[Node, ...]
    paths: tuple[DiagnosticPath, ...]

    @property
    def entity(self) -> Entity:
        return ENTITY_OF[self.paths[0].diagnosis]

    @property
    def case_id(self) -> str:
        return f"{self.entry.slide_id}-{self.nodes[0].node_id}"

    def kinds(self, magnification: int) -> dict[str, str]:
        """By node, what is drawn there: the kind of nest at 10x, of focus at 40x."""
        told: Mapping[str, Sequence[str]] = {10: NESTS, 40: FOCI}[magnification]
        return {node.node_id: kind_of(node.finding, told) for node in self.nodes if node.magnification == magnification}

    def case(self) -> dict[str, Any]:
        """All fields from low to high power; or, where its foci are of several kinds, those alone, in an order by lot,
        with the findings of the kinds that are there once."""
        foci = self.kinds(40)
        count = Counter(foci.values())
        shown = sorted(self.nodes, key=lambda node: node.magnification)
        tied: set[str] = set()
        if len(count) > 1 and 1 in count.values():
            shown = in_base_order([node for node in self.nodes if node.node_id in foci], self.case_id, 0)
            tied = {node_id for node_id, kind in foci.items() if count[kind] == 1}
        return {
            "case_id": self.case_id,
            "entity": self.entity.diagnosis,
            "fields": [_field(node, node.node_id in tied) for node in shown],
            "site": SITES[str(self.entry.organ)],
            "system": self.entry.organ,
            "source": self.collection,
            "patient_id": self.entry.patient_id,
            "split": self.entry.split,
        }

    def statements(self) -> Iterator[dict[str, Any]]:
        """Four a level that is shown: two on a kind that is drawn, two on one of the entity's that is not, each by lot.

        The lot of the slide decided which of the entity's kinds are drawn, so that the words do not tell, whatever is
        known of the entity and the site.
        """
        powers = {field["image"]["magnification"] for field in self.case()["fields"]}
        for level, power, told, own in (
            ("low", 10, NESTS_TOLD, self.entity.nests),
            ("high", 40, FOCI_TOLD, self.entity.foci),
        ):
            drawn = set(self.kinds(power).values())
            right = [kind for kind in own if kind in drawn and kind in told]
            wrong = [kind for kind in own if kind not in drawn and kind in told]
            if power not in powers or not right or not wrong:
                continue
            rng = random.Random(hashlib.sha256(f"{self.case_id}\0{level}".encode()).digest())
            true, false = rng.choice(right), rng.choice(wrong)
            for text in told[true]:
                yield {"case_id": self.case_id, "level": level, "statement": text, "true": True}
            basis = _drawn_so(false, self.entity)
            for text in told[false]:
                yield {"case_id": self.case_id, "level": level, "statement": text, "true": False, "basis": basis}


def _lesions(cohort: Cohort) -> Iterator[_Lesion]:
    """Every lesion, which is the first node of paths."""
    patients = list(dict.fromkeys(entry.patient_id for entry in cohort.slides))
    for entry in cohort.slides:
        nodes = {node.node_id: node for node in cohort.nodes_of(entry.slide_id)}
        lesions: dict[str, list[DiagnosticPath]] = {}
        for path in cohort.paths:
            if path.slide_id == entry.slide_id:
                lesions.setdefault(path.node_ids[0], []).append(path)
        for paths in lesions.values():
            seen = dict.fromkeys(node_id for path in paths for node_id in path.node_ids)
            collection = COLLECTIONS[patients.index(entry.patient_id) % 2]
            yield _Lesion(entry, collection, tuple(map(nodes.__getitem__, seen)), tuple(paths))


def _thinned(lesions: Sequence[_Lesion]) -> Iterator[_Lesion]:
    """The first lesions of each entity: of those of an organ, no more than of its rarest and one."""
    count = Counter((lesion.entry.organ, lesion.entity.diagnosis) for lesion in lesions)
    taken: Counter[tuple[str | None, str]] = Counter()
    for lesion in lesions:
        organ, entity = lesion.entry.organ, lesion.entity.diagnosis
        taken[organ, entity] += 1
        if taken[organ, entity] <= 1 + min(found for (where, _), found in count.items() if where == organ):
            yield lesion


def _field(node: Node, is_tied: bool) -> dict[str, Any]:
    image = {"slide_id": node.slide_id, "box": node.box.to_list(), "magnification": node.magnification}
    return {"image": image, "finding": node.finding} if is_tied else {"image": image}


def _level(paths: Sequence[DiagnosticPath], group: GradingGroup) -> str:
    """The highest grade that was seen, on the group's scale: low is its first level and high its last."""
    grades = ("low", "intermediate", "high")
    highest = max(grades.index(path.details.grade or "low") for path in paths)
    return group.levels[highest * (len(group.levels) - 1) // 2]


def _drawn_so(kind: str, entity: Entity) -> str:
    """An entity, another one where there is, that may be drawn with a kind of nest or focus."""
    others = [other for other in ENTITY_OF.values() if other != entity and kind in (*other.nests, *other.foci)]
    return (others or [entity])[0].diagnosis
