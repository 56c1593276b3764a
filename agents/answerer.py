"""`answerer`: one request for one item of `wsigym/Evidence-v0`.

    ask   the item, as CaseScope shows it: one message of a user, no system prompt. "Image 1:" and the image, and so on;
          the question; the options as lines "A. ..."; how to answer
    take  the reply becomes the answer

It may ask once, and what it gets is the answer: the environment parses it. Where the environment takes the place of an
option, the reply is parsed here (`wsigym.scoring.answers`), and one that names none ends the episode ("unparsed", or
"refused"). A refusal without a word, as servers give it, ends it too.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from wsigym.envs.policy import Action, Info, NoAnswer, Observation
from wsigym.scoring.answers import is_refusal, parse_option

from .client import Answer, Client
from .messages import ImageRef, Message, item_text, user
from .seat import Agent, run_graph

__all__ = ["Answerer", "AnswererState", "item_message"]

STEPS = 2


class AnswererState(TypedDict, total=False):
    """What goes from node to node."""

    info: Info
    answer: Answer
    action: Action


class Answerer(Agent):
    """The policy, for either form of the environment's answer."""

    has_overview = False

    def __init__(self, *clients: Client) -> None:
        super().__init__(*clients)
        self.graph = self._graph()

    def _graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        graph = StateGraph(AnswererState)
        graph.add_node("ask", self._ask)
        graph.add_node("take", self._take)
        graph.add_edge(START, "ask")
        graph.add_edge("ask", "take")
        graph.add_edge("take", END)
        return graph.compile()

    def reset(self, observation: Observation, info: Info) -> None:
        super().reset(observation, info)
        self._chooses = "option_mask" in observation

    def start(self, info: Info) -> None:
        """Nothing stays from an item to the next."""

    async def next_action(self, info: Info) -> Action:
        state = await run_graph(self.graph, AnswererState(info=info), STEPS)
        return state["action"]

    # -- nodes --------------------------------------------------------------------------------------------------------

    async def _ask(self, state: AnswererState) -> AnswererState:
        speaker, info = self.speaker, state["info"]
        images = [await speaker.images.ref(f"image-{place}") for place in range(len(info["image_sizes"]))]
        speaker.told.update(("question", "options", *info["metadata"]))
        message = item_message(info, images)
        return AnswererState(answer=await speaker.ask((message,), None, keep=len(images)))

    async def _take(self, state: AnswererState) -> AnswererState:
        answer, options = state["answer"], state["info"]["options"]
        if answer.refusal and not answer.text:
            raise NoAnswer("refused", answer.refusal)
        if not self._chooses:
            return AnswererState(action=answer.text)
        place = parse_option(answer.text, options, images=all(option.startswith("Image ") for option in options))
        if place is None:
            reason = f"no option in the reply: {answer.text[:200]!r}"
            raise NoAnswer("refused" if is_refusal(answer.text) else "unparsed", reason)
        return AnswererState(action=place)


def item_message(info: Info, images: list[ImageRef]) -> Message:
    """An item as one message: images, question, options, how to answer."""
    shown = [part for number, image in enumerate(images, start=1) for part in (f"Image {number}:", image)]
    return user(*shown, item_text(info["question"], info["options"], info["answer_words"]))
