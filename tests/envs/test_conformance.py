"""Every registered environment keeps every rule; and each rule is broken by an environment made to break it."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import faulty_environments as faulty
import numpy as np
import pytest
from cohort_builder import build_cohort
from evidence_builder import SUITE, TASK, build_evidence, item, reference

from wsigym.cohorts import Cohort
from wsigym.envs.conformance import RULES, check_environment
from wsigym.envs.leaks import Secrets, find_secrets, numbers_in, secrets_of
from wsigym.envs.registration import ENVIRONMENTS
from wsigym.errors import ConformanceError, UnknownNameError

SECRETS = Secrets(frozenset({faulty.TEXT}), frozenset({faulty.NUMBER}))

# -- the registered environments ----------------------------------------------------------------------------------

MARKED_NODES: tuple[dict[str, Any], ...] = (
    {"node_id": "zq-root", "parent_id": None, "magnification": 2.5, "box": [521, 307, 1116, 1214], "finding": "sheets"},
    {
        "node_id": "zq-mid",
        "parent_id": "zq-root",
        "magnification": 10,
        "box": [571, 347, 401, 619],
        "finding": "glands",
    },
    {
        "node_id": "zq-leaf",
        "parent_id": "zq-mid",
        "magnification": 40,
        "box": [587, 383, 257, 269],
        "finding": "mitoses",
    },
    {"node_id": "zq-other", "parent_id": None, "magnification": 2.5, "box": [359, 937, 677, 854], "finding": "fat"},
)
MARKED_PATHS: tuple[dict[str, Any], ...] = (
    {
        "path_id": "zq-path",
        "node_ids": ["zq-root", "zq-mid", "zq-leaf"],
        "diagnosis": "zq-diagnosis",
        "category": "zq-category",
        "details": {"subtype": "zq-subtype", "grade": "zq-grade", "marker": "zq-marker", "invasion": "zq-invasion"},
    },
)
OUTLINE = [[523, 311], [1629, 331], [1613, 1499], [541, 1511], [523, 311]]

KWARGS: dict[str, dict[str, Any]] = {
    "wsigym/Evidence-v0": {"suite": SUITE, "task": TASK, "image_px": 40, "max_images": 3},
    "wsigym/Localization-v0": {"view_px": 48, "overview_px": 40, "context": [5, 10], "reward": "shaped"},
    "wsigym/LocalizationContinuous-v0": {"view_px": 40, "overview_px": 40, "reward": "shaped"},
    "wsigym/LocalizationPanZoom-v0": {"view_px": 40, "overview_px": 36, "reward": "shaped"},
    "wsigym/Exploration-v0": {"tile_px": 40, "budget": "K=3,2,1", "page_size": 4},
}
"""Arguments that make an id small. Not needed to conform; a new id may be tested without."""


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cohort whose references carry marks: texts with "zq-", and unlikely numbers."""
    folder = build_cohort(tmp_path_factory.mktemp("marked"), nodes=MARKED_NODES, paths=MARKED_PATHS)
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [OUTLINE]},
        "properties": {"classification": {"name": "tumour"}},
    }
    (folder / "regions").mkdir()
    for slide in ("s1", "s2"):
        text = json.dumps({"type": "FeatureCollection", "features": [feature]})
        (folder / "regions" / f"{slide}.geojson").write_text(text)
    hidden = {"provenance": {"node": "zq-provenance"}, "strata": {"family": "zq-family"}}
    build_evidence(folder, [item(n) for n in range(5)], [reference(n, **hidden) for n in range(5)])
    return folder


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_registered_environment(env_id: str, rule: str, marked: Path) -> None:
    kwargs = {"cohort": str(marked), **KWARGS.get(env_id, {})}
    secrets = secrets_of(Cohort.load(marked))
    assert len(secrets.texts) == 13
    assert len(secrets.numbers) > 30
    check_environment(env_id, kwargs, rules=[rule], secrets=secrets)


@pytest.mark.parametrize("rule", ["gymnasium", "determinism", "in space", "pickling", "vector", "spec", "ending"])
def test_evidence_conforms_with_text_for_an_answer(rule: str, marked: Path) -> None:
    kwargs = {"cohort": str(marked), **KWARGS["wsigym/Evidence-v0"], "answer": "text"}
    check_environment("wsigym/Evidence-v0", kwargs, rules=[rule])


# -- the rules ----------------------------------------------------------------------------------------------------

BREAKS: dict[type[faulty.Sound], set[str]] = {
    faulty.ReusedBuffer: {"fresh memory"},
    faulty.ReusedView: {"fresh memory"},
    faulty.ReusedList: {"fresh memory"},
    faulty.OwnState: {"fresh memory"},
    faulty.HashOrder: {"determinism"},
    faulty.NotANumber: {"in space"},
    faulty.InfiniteInfo: {"in space"},
    faulty.OutOfSpace: {"in space"},
    faulty.OtherDtype: {"in space"},
    faulty.NumpyBool: {"in space"},
    faulty.ArrayReward: {"in space"},
    faulty.SameStart: {"starts differ"},
    faulty.NothingChanges: {"observations change"},
    faulty.Unpicklable: {"pickling"},
    faulty.Forgetful: {"pickling"},
    faulty.WorkerName: {"vector"},
    faulty.StaleText: {"vector"},
    faulty.ClosesOnce: {"closing"},
    faulty.GrowingFrame: {"rendering"},
    faulty.LateFloatFrame: {"rendering"},
    faulty.RenderMoves: {"rendering"},
    faulty.StepsOn: {"ending"},
    faulty.NeverEnds: {"ending"},
    faulty.Prints: {"quiet"},
    faulty.Warns: {"quiet"},
    faulty.LeaksText: {"leaks"},
    faulty.LeaksKeyedBox: {"leaks"},
    faulty.LeaksInNote: {"leaks"},
    faulty.LeaksInObservation: {"leaks"},
    faulty.LeaksInRepr: {"leaks"},
    faulty.LeaksInSpace: {"leaks"},
    faulty.LeaksInMetadata: {"leaks"},
    faulty.LeaksInLog: {"leaks"},
    faulty.InfiniteSpace: {"gymnasium"},
}
"""Environments with one fault, and the one rule that it breaks."""


def broken_by(
    kind: type[faulty.Sound], kwargs: dict[str, Any] | None = None, rules: Iterable[str] = RULES
) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fault may warn; only the rule is to say so
        try:
            check_environment(f"faulty/{kind.__name__}-v0", kwargs, rules=rules, secrets=SECRETS)
        except ConformanceError as error:
            return error.broken
    return {}


def test_the_error_lists_what_is_broken_and_pickles() -> None:
    with pytest.raises(ConformanceError) as caught:
        check_environment("faulty/SameStart-v0", {"thing": {1}}, rules=["starts differ", "spec", "closing"])
    error = caught.value
    assert list(error.broken) == ["starts differ", "spec"]
    assert str(error).startswith(
        "faulty/SameStart-v0 breaks 2 of the rules of wsigym.envs.conformance:\n  starts differ: "
    )
    assert pickle.loads(pickle.dumps(error)).broken == error.broken


def test_a_sound_environment_keeps_all_rules() -> None:
    assert broken_by(faulty.Sound) == {}


@pytest.mark.parametrize("kind", BREAKS, ids=lambda kind: kind.__name__)
def test_one_fault_breaks_its_rule_alone(kind: type[faulty.Sound]) -> None:
    assert set(broken_by(kind)) == BREAKS[kind]


@pytest.mark.parametrize("kind", [faulty.Clock, faulty.GlobalNumbers, faulty.RememberedEpisode])
def test_chance_from_outside_breaks_whatever_compares(kind: type[faulty.Sound]) -> None:
    broken = broken_by(kind)
    assert {"determinism", "fresh memory"} <= set(broken)
    assert {"in space", "leaks", "quiet", "ending", "closing"}.isdisjoint(broken)


def test_arguments_that_json_cannot_hold_break_the_spec_alone() -> None:
    assert set(broken_by(faulty.Sound, {"thing": {1, 2}})) == {"spec"}


def test_every_rule_is_broken_by_something_and_every_fault_is_tried() -> None:
    assert set().union(*BREAKS.values()) | {"spec"} == set(RULES)
    untried = set(faulty.ALL) - set(BREAKS)
    assert untried == {faulty.Sound, faulty.Clock, faulty.GlobalNumbers, faulty.RememberedEpisode}


@pytest.mark.parametrize(
    ("kind", "rule", "words"),
    [
        (faulty.Clock, "determinism", ["played again, seed 0", "step 4", "info['seconds'] is float"]),
        (faulty.ReusedBuffer, "fresh memory", ["seed 0: step 4 and step 5", "observation['pixels']", "return a copy"]),
        (faulty.NotANumber, "in space", ["seed 0, step 4", "observation['place']", "nan"]),
        (faulty.NumpyBool, "in space", ["terminated is bool", "a bool is needed"]),
        (faulty.LeaksText, "leaks", ["info['debug']['nodes'][0]", faulty.TEXT]),
        (faulty.LeaksInObservation, "leaks", ["observation['place']", str(faulty.NUMBER)]),
        (faulty.Prints, "quiet", ["stdout: step"]),
        (faulty.NeverEnds, "ending", ["did not end within 200 steps"]),
    ],
)
def test_the_message_says_where(kind: type[faulty.Sound], rule: str, words: list[str]) -> None:
    for word in words:
        assert word in broken_by(kind, rules=[rule])[rule]


def test_unknown_rule() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown rule 'pickle'\. Did you mean 'pickling'"):
        check_environment("faulty/Sound-v0", rules=["pickle"])


# -- secrets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({"a": ["x", "see marker-7f3a."]}, ["i['a'][1]"]),
        ({"a": {"b": ({7919},)}}, ["i['a']['b'][0]{}"]),
        (7919.0, ["i"]),
        (np.array([1, 7919], np.int16), ["i"]),
        (np.array([[0.5, 7919.0]], np.float32), ["i"]),
        (np.array([None, "marker-7f3a"], object), ["i[1]"]),
        ("at (7919, 3)", ["i"]),
        ("x=7919;", ["i"]),
        ("hash 0a7919bc, 79190, 17919, 7919.5, 0.7919", []),
        ({"a": [7918, True, None, 7919.5, float("nan"), float("inf"), "marker"]}, []),
        (Secrets(frozenset({"marker-7f3a"})), ["i.texts{}"]),
        (RuntimeError("no marker-7f3a"), ["i"]),
    ],
)
def test_finding_secrets(value: Any, places: list[str]) -> None:
    assert [place for place, _ in find_secrets(value, SECRETS, "i")] == places


def test_small_numbers_are_no_secrets() -> None:
    assert numbers_in({"a": [255, 256, "3 of 300"]}) == {256, 300}
