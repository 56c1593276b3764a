"""`tile-scorer`: mode B of EviPathBench's task 3. The model says of each tile whether it is suspicious.

    ask   the tiles of the page, one a request (`tile-scorer`, the paper's way) or all in one (`tile-scorer:page`)
    take  the answers become suspicions; where there are none, the episode ends

A tile is answered with Yes or No and a score in 0..1. Where the server gives the probabilities of the first token and
these are of Yes and No, the score is p(Yes) / (p(Yes) + p(No)) over their spellings; else it is the stated one. A page
in one request has stated scores only. A Yes is a suspicion of 0.5 + score / 2, a No just under score / 2.

It may ask twice for each tile, or each page: an answer that cannot be read is sent back once. A tile that is not
answered then is a No with score 0, and counted in the record's checkpoints. Up to eight requests of a page are in
flight.

Ends when the environment says so; without an answer where no tile of the first page was answered, or 16 in a row were
not: "refused" where most of these were refusals, else "unparsed". Each page is seen by itself, so there is no
conversation, and images never pile up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from wsigym.envs.policy import Action, Info, NoAnswer, Observation
from wsigym.envs.verdicts import suspicion
from wsigym.errors import ParseError

from .client import Answer, Client
from .messages import ImageRef, request_text, system, user
from .parsing import TileAnswer, page_answers_of, tile_answer_of
from .seat import Agent, all_or_none, run_graph

__all__ = ["TileScorer", "TileScorerState"]

TILE, PAGE = "tile-scorer-v1", "tile-scorer-page-v1"

METADATA = ("magnification", "target")

AT_ONCE = 8
"""Requests of one episode in flight: enough to keep a server busy, few beside the run's other episodes."""

MAX_UNANSWERED_IN_A_ROW = 16

STEPS = 2


class TileScorerState(TypedDict, total=False):
    """What goes from node to node, and from one page to the next."""

    info: Info
    answers: tuple[TileAnswer | NoAnswer, ...]  # of the page's tiles, in order
    unanswered: tuple[NoAnswer, ...]  # tiles in a row
    pages: int
    suspicions: tuple[float, ...]


class TileScorer(Agent):
    """The policy; with `page` all tiles of a page go into one request."""

    def __init__(self, *clients: Client, page: bool = False) -> None:
        super().__init__(*clients)
        self.page = page
        self.graph = self._graph()

    def _graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        graph = StateGraph(TileScorerState)
        graph.add_node("ask", self._ask)
        graph.add_node("take", self._take)
        graph.add_edge(START, "ask")
        graph.add_edge("ask", "take")
        graph.add_edge("take", END)
        return graph.compile()

    def reset(self, observation: Observation, info: Info) -> None:
        super().reset(observation, info)
        self._places = len(observation["tile_mask"])

    def start(self, info: Info) -> None:
        self._state = TileScorerState(answers=(), unanswered=(), pages=0, suspicions=())

    async def next_action(self, info: Info) -> Action:
        self._state = await run_graph(self.graph, {**self._state, "info": info}, STEPS)
        scores = np.zeros(self._places, np.float32)
        scores[: len(self._state["suspicions"])] = self._state["suspicions"]
        return scores

    # -- nodes --------------------------------------------------------------------------------------------------------

    async def _ask(self, state: TileScorerState) -> TileScorerState:
        speaker, info = self.speaker, state["info"]
        tiles = [await speaker.images.ref(f"tile-{place}") for place in range(len(info["tiles"]))]
        if not tiles:
            return TileScorerState(answers=())
        speaker.told.update(METADATA)
        if self.page:
            return TileScorerState(answers=await self._ask_page(tiles, info))
        turns = [(self.episode.next_turn(), self.episode.next_turn()) for _ in tiles]
        prompt = self.prompt(TILE)
        words = request_text("score tile", _facts(info))
        answers = await all_or_none(
            (
                speaker.ask_for(
                    (system(prompt.filled()), user(words, tile)),
                    prompt,
                    lambda answer: tile_answer_of(answer.text, answer.first_token_logprobs),
                    turns=own,
                    logprobs=True,
                )
                for tile, own in zip(tiles, turns, strict=True)
            ),
            AT_ONCE,
        )
        speaker.images.forget_but(frozenset())
        return TileScorerState(answers=tuple(answers))

    async def _ask_page(self, tiles: list[ImageRef], info: Info) -> tuple[TileAnswer | NoAnswer, ...]:
        prompt = self.prompt(PAGE)
        parts: list[str | ImageRef] = [request_text("score page", _facts(info) | {"tiles": len(tiles)})]
        for number, tile in enumerate(tiles, start=1):
            parts += [f"Tile {number}:", tile]
        heard: dict[int, TileAnswer] = {}
        found = await self.speaker.ask_for((system(prompt.filled()), user(*parts)), prompt, _reader(len(tiles), heard))
        self.speaker.images.forget_but(frozenset())
        missing = found if isinstance(found, NoAnswer) else NoAnswer("unparsed", "not in the list of answers")
        return tuple(heard.get(number, missing) for number in range(1, len(tiles) + 1))

    async def _take(self, state: TileScorerState) -> TileScorerState:
        unanswered = state["unanswered"]
        for answer in state["answers"]:
            unanswered = (*unanswered, answer) if isinstance(answer, NoAnswer) else ()
            if len(unanswered) == MAX_UNANSWERED_IN_A_ROW:
                raise _ending(unanswered)
        missed = [answer for answer in state["answers"] if isinstance(answer, NoAnswer)]
        if missed:
            self.episode.checkpoints.append(
                {
                    "page": state["pages"],
                    "tiles": len(state["answers"]),
                    "unparsed": sum(answer.outcome == "unparsed" for answer in missed),
                    "refused": sum(answer.outcome == "refused" for answer in missed),
                }
            )
        if state["pages"] == 0 and missed and len(missed) == len(state["answers"]):
            raise _ending(tuple(missed))
        suspicions = tuple(
            0.0 if isinstance(answer, NoAnswer) else suspicion(yes=answer.yes, score=answer.score)
            for answer in state["answers"]
        )
        return TileScorerState(suspicions=suspicions, unanswered=unanswered, pages=state["pages"] + 1)


def _facts(info: Info) -> dict[str, Any]:
    return {"target": info["target"], "magnification": info["magnification"]}


def _reader(tiles: int, heard: dict[int, TileAnswer]) -> Callable[[Answer], None]:
    """Reads a page's answers into `heard`, where what was heard first stays; asks again for tiles that are missing."""

    def read(answer: Answer) -> None:
        for number, said in page_answers_of(answer.text, tiles).items():
            heard.setdefault(number, said)
        missing = [str(number) for number in range(1, tiles + 1) if number not in heard]
        if missing:
            raise ParseError(
                f"tiles {', '.join(missing)} have no answer that can be read; give an object with tile, answer and "
                "score for each of them."
            )

    return read


def _ending(unanswered: tuple[NoAnswer, ...]) -> NoAnswer:
    refusals = [each for each in unanswered if each.outcome == "refused"]
    words = f"{len(unanswered)} tiles in a row without an answer; last: "
    if 2 * len(refusals) > len(unanswered):
        return NoAnswer("refused", words + refusals[-1].reason)
    return NoAnswer("unparsed", words + unanswered[-1].reason)
