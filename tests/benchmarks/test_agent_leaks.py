"""No request to a model holds what is hidden: references with marks, and a search for the marks on the whole wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cohort_builder import build_cohort, read_lines
from evidence_builder import SUITE, TASK, build_evidence, item, reference
from shapely import Polygon
from tumour_builder import write_regions

from wsigym.agents.endpoints import Endpoint
from wsigym.agents.scripted_server import ScriptedServer
from wsigym.benchmarks import suites
from wsigym.benchmarks.evidence_task import EvidenceTask
from wsigym.benchmarks.evipath.localization import Localization
from wsigym.benchmarks.runner import run
from wsigym.benchmarks.transcripts import export_transcripts
from wsigym.cohorts import Cohort
from wsigym.envs.leaks import Secrets, find_secrets, secrets_of

pytestmark = pytest.mark.network

NODES = [
    {"node_id": "zq-a", "parent_id": None, "magnification": 2.5, "box": [263, 311, 1201, 1103], "finding": "crowded"},
    {"node_id": "zq-b", "parent_id": "zq-a", "magnification": 10, "box": [379, 401, 419, 331], "finding": "glands"},
    {"node_id": "zq-c", "parent_id": "zq-b", "magnification": 40, "box": [431, 443, 283, 269], "finding": "mitosis"},
]
PATHS = [
    {
        "path_id": "zq-path",
        "node_ids": ["zq-a", "zq-b", "zq-c"],
        "diagnosis": "zq-diagnosis",
        "category": "zq-category",
        "details": {"subtype": "zq-subtype"},
    }
]
OUTLINE = Polygon([(523, 317), (1627, 331), (1613, 1499), (541, 1511)])


@pytest.fixture
def cohort(tmp_path: Path) -> Cohort:
    slides = [{"slide_id": "s1", "path": "zq-file.svs", "patient_id": "zq-patient", "split": "train"}]
    folder = build_cohort(tmp_path / "cohort", slides=slides, nodes=NODES, paths=PATHS)
    write_regions(folder, "s1", [OUTLINE])
    return Cohort.load(folder)


def bodies(folder: Path, wire: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """The key of each request's episode, and its body without the bytes of images."""
    sent = {line["sha256"]: line["body"] for line in read_lines(wire)}
    for line in read_lines(folder / "requests.jsonl"):
        yield json.loads(line["episode"]), without_images(sent[line["sha256"]])


def without_images(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_images(each) for name, each in value.items() if name != "image_url"}
    return [without_images(each) for each in value] if isinstance(value, list) else value


def texts_of(cohort: Cohort) -> set[str]:
    """Every text that is hidden: of the annotations, the files and the manifest."""
    return set(secrets_of(cohort).texts) | {"zq-", str(cohort.root), ".svs"}


def test_localization(cohort: Cohort, tmp_path: Path) -> None:
    wire, out = tmp_path / "wire.jsonl", tmp_path / "run"
    with ScriptedServer(wire_log=wire) as server:
        # In 0..1, so that no box that the model itself chose looks like one of the annotations.
        endpoint = Endpoint(name="e", base_url=server.base_url, model="scripted", coordinates="unit")
        words = endpoint.model_copy(update={"name": "words", "tools": False})
        agents = ["agent:localizer", "agent:verifier"]
        run("evipath/localization", policies=agents, endpoints=[endpoint, words], cohort=cohort.root, out=out)
    boxes = {item.item_id: item.question.search_box for item in Localization().items(cohort, None)}
    numbers = secrets_of(cohort).numbers
    checked = 0
    for key, body in bodies(out, wire):
        # The one permitted exception: the parent's box is where a deeper query looks.
        box = boxes[key["item"]]
        secrets = Secrets(frozenset(texts_of(cohort)), numbers).without({*box.to_list(), box.right, box.bottom})
        assert list(find_secrets(body, secrets)) == []
        assert list(find_secrets([body, "the answer is zq-c, at 283"], secrets))
        checked += 1
    assert checked > 30

    export_transcripts(out, tmp_path / "chats.jsonl")
    for line in read_lines(tmp_path / "chats.jsonl"):
        assert [found for found in find_secrets(line, Secrets(frozenset(texts_of(cohort)))) if found[1] != ".svs"] == []


def test_exploration(cohort: Cohort, tmp_path: Path) -> None:
    wire, out = tmp_path / "wire.jsonl", tmp_path / "run"
    arguments = {"tile_px": 32, "page_size": 16, "skip_empty": False}
    with ScriptedServer(wire_log=wire) as server:
        endpoint = Endpoint(name="e", base_url=server.base_url, model="scripted")
        agents = ["agent:tile-scorer", "agent:tile-scorer:page"]
        run(
            "evipath/exploration",
            policies=agents,
            endpoints=[endpoint],
            cohort=cohort.root,
            budgets=["K=1,1,1"],
            env_arguments=arguments,
            out=out,
        )
    secrets = Secrets(frozenset(texts_of(cohort)), secrets_of(cohort).numbers)
    found = [leak for _, body in bodies(out, wire) for leak in find_secrets(body, secrets)]
    assert found == []
    assert len(read_lines(out / "requests.jsonl")) > 15


def test_items(cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a reference, an item's ids and groups, or a file's name, whatever the kind of answer."""
    diagnosis = {"diagnosis": "zq-entity"}
    answers = {"option": 1, "diagnosis": diagnosis, "json": {"zq-key": "zq-value"}, "number": 7919, "text": "zq-text"}
    groups = {"patient": "zq-patient", "case": "zq-case", "slide": "zq-slide", "set": "zq-set", "source": "zq-source"}
    hidden = {"provenance": {"rule": "zq-rule", "count": 7877}, "strata": {"family": "zq-family"}}
    items, references = [], []
    for number, (kind, answer) in enumerate(answers.items()):
        form = {"kind": kind, "words": "Answer."}
        images = [*item()["images"][:2], {"file": "images/zq-field.png"}]
        changes = {"item_id": f"zq-{number}", "answer": form, "images": images, "group": groups, "set_id": "zq-set"}
        items.append(item(number, **changes))
        accepted = [{"diagnosis": "zq-other"}] if kind == "diagnosis" else []
        references.append(reference(number, item_id=f"zq-{number}", answer=answer, accepted=accepted, **hidden))
    build_evidence(cohort.root, items, references)
    (cohort.root / "images" / "field.png").rename(cohort.root / "images" / "zq-field.png")
    known = [{"entity": f"zq-{name}", "behaviour": "b", "lineage": "l", "family": "f"} for name in ("entity", "other")]
    (cohort.root / "references" / SUITE / "ontology.json").write_text(json.dumps(known))
    name = f"{SUITE}/{TASK}"
    monkeypatch.setattr(suites, "TASKS", {**suites.TASKS, name: EvidenceTask(name, "a test")})

    wire, out = tmp_path / "wire.jsonl", tmp_path / "run"
    with ScriptedServer(wire_log=wire) as server:
        endpoint = Endpoint(name="e", base_url=server.base_url, model="scripted")
        run(name, policies=["agent:answerer"], endpoints=[endpoint], cohort=cohort.root, out=out)
    loaded = Cohort.load(cohort.root)
    # Not the boxes of the tree, some of whose numbers are also sizes in pixels of what is shown.
    secrets = Secrets(frozenset(texts_of(loaded)), frozenset({7919, 7877}))
    sent = [body for _, body in bodies(out, wire)]
    assert [leak for body in sent for leak in find_secrets(body, secrets)] == []
    assert list(find_secrets([sent, "it is zq-1"], secrets))
    assert len(sent) == len(answers)
    assert all("Which of these is seen" in json.dumps(body) for body in sent)
