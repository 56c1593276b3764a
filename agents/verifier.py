"""`verifier`: propose, look, judge, and turn back. The same tools and the same budget as `localizer`, another order.

    propose  from the overview, the model ranks candidates: where the target could be
    look     the best candidate that was not looked at becomes an action
    judge    one look and the target, nothing else: supports, conflicts or uninformative, with a confidence
    report   the best candidate becomes the answer, by rule

A look that supports with a confidence of 0.7 or more ends the search. Any other verdict sends it back to the next
candidate; where none is left and the budget is not spent, to another proposal, which is told what was judged. The best
is the candidate with the highest confidence for the target: the judge's where it supports, 0.5 where it is
uninformative, 1 minus the judge's where it conflicts; without a look only where nothing was looked at. Of equals the
earlier. Where the judge says where in the look the target lies, the answer is that box.

The judge may be another endpoint, which then sees the looks and the target alone: a local model that navigates, and an
external one that is shown little. Both endpoints' conventions are their own.

It may ask, for ROIs of N: N times for proposals at most, N times for verdicts; and once more each time that the answer
cannot be read. Then an unread proposal ends the episode ("unparsed", or "refused") where nothing was looked at, and
otherwise ends the search; an unread verdict counts as uninformative. A candidate that the environment refuses is passed
over, and so is one beyond the convention, after that was told once; three in a row end the episode ("invalid"). Every
verdict is a checkpoint in the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from wsigym.envs.localization import extract_roi, finish_and_report
from wsigym.envs.policy import Action, Info
from wsigym.errors import InvalidArgumentError, ParseError
from wsigym.slides import Box, box_from_unit, box_to_unit

from .client import Answer, Client
from .coordinates import BoxNumbers, Coordinates
from .localizer import METADATA, NAN_BOX, facts_of
from .messages import OVERVIEW, request_text, system, user
from .parsing import Candidate, Judgement, candidates_of, judgement_of
from .seat import Agent, run_graph

__all__ = ["Verifier", "VerifierState"]

PROPOSE, JUDGE = "verifier-propose-v1", "verifier-judge-v1"

SURE = 0.7
"""A look that supports with this confidence ends the search."""

MAX_CANDIDATES = 5
"""Candidates of one proposal: the paper's base budget at 40x."""

UNDECIDED = 0.5
"""What an uninformative look is worth: between one that supports and one that conflicts."""

STEPS = 3
"""Nodes between two actions: a verdict, a proposal, and the action. The budget bounds the proposals."""


class Judged(TypedDict):
    """A look's verdict: the candidate, the look's level-0 box, what was judged, and how likely the target is there."""

    candidate: list[float]  # in the proposer's convention
    roi: list[int]
    verdict: str
    confidence: float | None
    reason: str | None
    answer_unit: BoxNumbers  # the box to report, of the search box
    worth: float


class VerifierState(TypedDict, total=False):
    """What goes from node to node, and from one action to the next."""

    info: Info
    candidates: tuple[Candidate, ...]  # not yet looked at, the best first
    looking_at: Candidate | None  # the last action's
    judged: tuple[Judged, ...]
    proposals: int
    exhausted: bool  # no further proposal is to be had
    action: Action | None


class Verifier(Agent):
    """The policy: `Verifier(client)`, or `Verifier(proposer, judge)`."""

    def __init__(self, *clients: Client) -> None:
        super().__init__(*clients)
        self.graph = self._graph()

    def _graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        graph = StateGraph(VerifierState)
        graph.add_node("propose", self._propose)
        graph.add_node("look", self._look)
        graph.add_node("judge", self._judge)
        graph.add_node("report", self._report)
        graph.add_conditional_edges(START, self._after_action, ["propose", "judge", "look", "report"])
        graph.add_conditional_edges("propose", self._next, ["look", "report"])
        graph.add_conditional_edges("judge", self._next, ["propose", "look", "report"])
        graph.add_edge("look", END)
        graph.add_edge("report", END)
        return graph.compile()

    def start(self, info: Info) -> None:
        self._state = VerifierState(
            candidates=(), looking_at=None, judged=(), proposals=0, exhausted=False, action=None
        )
        self._budget = info["rois_left"]
        self._looks = 0

    async def next_action(self, info: Info) -> Action:
        self._state = await run_graph(self.graph, {**self._state, "info": info, "action": None}, STEPS)
        return self._state["action"]

    # -- which node is next -------------------------------------------------------------------------------------------

    def _after_action(self, state: VerifierState) -> str:
        if state["looking_at"] is not None and "error" not in state["info"]:
            return "judge"
        return self._next(state)

    def _next(self, state: VerifierState) -> str:
        spent = state["info"]["rois_left"] == 0
        sure = any(each["verdict"] == "supports" and each["worth"] >= SURE for each in state["judged"])
        if sure or (spent and (state["judged"] or state["candidates"])):
            return "report"
        if state["candidates"]:
            return "look"
        return "report" if state["exhausted"] else "propose"

    # -- nodes --------------------------------------------------------------------------------------------------------

    async def _propose(self, state: VerifierState) -> VerifierState:
        speaker, info = self.speaker, state["info"]
        overview = await speaker.images.ref(OVERVIEW)
        self._coordinates = Coordinates(speaker.endpoint.coordinates, Box.of(info["search_box"]), overview.size)
        speaker.told.update(METADATA)
        prompt = self.prompt(PROPOSE)
        facts = facts_of(info, self._coordinates, overview, speaker.endpoint.max_image_px)
        facts["candidates_wanted"] = max(1, min(MAX_CANDIDATES, info["rois_left"]))
        facts["judged"] = [
            {"bbox": self._coordinates.from_box(Box.of(each["roi"])), "verdict": each["verdict"]}
            for each in state["judged"]
        ]
        messages = (
            system(prompt.filled(meaning=self._coordinates.meaning)),
            user(request_text("propose", facts), "Overview of the search box:", overview),
        )
        found = await speaker.ask_for(messages, prompt, self._usable())
        proposals = state["proposals"] + 1
        if isinstance(found, tuple):
            wanted = found[: facts["candidates_wanted"]]
            return VerifierState(
                candidates=wanted, proposals=proposals, exhausted=proposals >= self._budget, looking_at=None
            )
        if not state["judged"]:
            raise found
        return VerifierState(candidates=(), proposals=proposals, exhausted=True, looking_at=None)

    async def _look(self, state: VerifierState) -> VerifierState:
        candidate, *rest = state["candidates"]
        self.remarks = {"reason": candidate.reason}
        action = extract_roi(self._box_unit(candidate.box))
        return VerifierState(candidates=tuple(rest), looking_at=candidate, action=action)

    async def _judge(self, state: VerifierState) -> VerifierState:
        judge, info, candidate = self.episode.speakers[-1], state["info"], state["looking_at"]
        assert candidate is not None, "a look was answered"
        self._looks += 1
        look = await judge.images.ref(f"roi-{self._looks}")
        inside = Coordinates(judge.endpoint.coordinates, Box.of(info["roi"]), look.size)
        judge.told.update(("magnification", "target"))
        prompt = self.prompt(JUDGE)
        facts = {
            "target": info["target"],
            "magnification": look.magnification,
            "target_magnification": info["magnification"],
            "coordinates": inside.facts(),
        }
        messages = (system(prompt.filled(meaning=inside.meaning)), user(request_text("judge", facts), look))
        found = await judge.ask_for(messages, prompt, lambda answer: judgement_of(answer.text))
        judge.images.forget_but(frozenset())
        judged = self._judged(candidate, found if isinstance(found, Judgement) else None, inside, info)
        self.episode.checkpoints.append(
            {key: judged[key] for key in ("candidate", "roi", "verdict", "confidence", "reason", "worth")}
            | {"answered": isinstance(found, Judgement), "endpoint": judge.endpoint.name, "image": look.name}
        )
        return VerifierState(judged=(*state["judged"], judged), looking_at=None)

    async def _report(self, state: VerifierState) -> VerifierState:
        if state["judged"]:
            best = max(state["judged"], key=lambda each: each["worth"])  # of equals the first
            box_unit, confidence, conclusion = best["answer_unit"], best["worth"], best["reason"]
        else:
            candidate = next(iter(state["candidates"]), state["looking_at"])
            box_unit, confidence, conclusion = NAN_BOX, None, None
            if candidate is not None:
                box_unit = self._box_unit(candidate.box)
                confidence, conclusion = candidate.confidence, candidate.reason
        self.remarks = {"conclusion": conclusion}
        return VerifierState(action=finish_and_report(box_unit, confidence))

    # -- verdicts -----------------------------------------------------------------------------------------------------

    def _usable(self) -> Callable[[Answer], tuple[Candidate, ...]]:
        """Reads the candidates whose numbers the convention allows. Where none does, that is told once; then they are
        taken, and become the invalid requests that they are."""
        told = False

        def read(answer: Answer) -> tuple[Candidate, ...]:
            nonlocal told
            given = candidates_of(answer.text)
            faults = [self._coordinates.beyond(candidate.box) for candidate in given]
            found = tuple(candidate for candidate, fault in zip(given, faults, strict=True) if fault is None)
            if found or told:
                return found or given
            told = True
            raise ParseError(f"{faults[0]}.")

        return read

    def _box_unit(self, numbers: BoxNumbers) -> BoxNumbers:
        """Of the search box, for an action; not a number where the convention does not allow these."""
        return NAN_BOX if self._coordinates.beyond(numbers) else self._coordinates.to_unit(numbers)

    def _judged(self, candidate: Candidate, judgement: Judgement | None, inside: Coordinates, info: Info) -> Judged:
        """A verdict as it is kept; one that could not be read is uninformative."""
        roi = inside.frame
        worth, box = UNDECIDED, roi
        if judgement is not None and judgement.verdict == "supports":
            worth = judgement.confidence
            box = _part_of(roi, judgement.box, inside) or roi
        elif judgement is not None and judgement.verdict == "conflicts":
            worth = 1 - judgement.confidence
        x, y, w, h = box_to_unit(box, Box.of(info["search_box"])).tolist()
        return Judged(
            candidate=list(candidate.box),
            roi=roi.to_list(),
            verdict="uninformative" if judgement is None else judgement.verdict,
            confidence=None if judgement is None else judgement.confidence,
            reason=None if judgement is None else judgement.reason,
            answer_unit=(x, y, w, h),
            worth=worth,
        )


def _part_of(roi: Box, numbers: BoxNumbers | None, inside: Coordinates) -> Box | None:
    """The level-0 box of what a judge pointed out in a look; None where that is nothing inside it."""
    if numbers is None or inside.beyond(numbers) is not None:
        return None
    try:
        part = box_from_unit(inside.to_unit(numbers), roi).intersection(roi)
    except InvalidArgumentError:  # so large that it is infinite
        return None
    return None if part.is_empty else part
