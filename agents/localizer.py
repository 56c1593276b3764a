"""`localizer`: the loop of EviPathBench's task 3, mode A. The model looks where it wants, and reports a box.

    hear    what the environment says of the last request becomes a tool's result, with its image; at the start, the
            task becomes the first messages
    ask     the model
    read    its message becomes calls of tools; without one that can be read it is reminded
    serve   calls are answered in turn, up to the first that is an action: a look or the report; then, if there is
            none, the model is asked again

It may ask 3 (ROIs + 2) times: three for each look and for the report, as two invalid requests may come before each, and
three to begin with. Of several calls in one message each is done and answered; from the ninth on they are not.

Ends: with the report; when the environment says so; without an answer where three messages in a row hold no call that
can be read ("unparsed"), where the model declines ("refused"), or where it asks no more ("budget_exhausted"). With the
budget spent, or two messages left, it is told to report, and may call nothing else where the server can see to that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from wsigym.envs.localization import MAX_INVALID_IN_A_ROW, extract_roi, finish_and_report
from wsigym.envs.policy import Action, Info, NoAnswer
from wsigym.errors import ParseError
from wsigym.slides import Box

from .client import Client, ToolCall
from .coordinates import Coordinates
from .messages import OVERVIEW, ImageRef, Message, images_to_send, system, user
from .parsing import NO_CALL, Call, ExtractRoi, FinishAndReport, GetImageInfo, call_of, calls_in_text
from .seat import Agent, refused, run_graph
from .tools import FINISH_AND_REPORT, TOOLS, must_call, tools_as_text

__all__ = ["Localizer", "LocalizerState", "facts_of"]

PROMPT = "localizer-v1"

METADATA = ("magnification", "mpp", "search_box", "slide_size", "target")
"""What a model is told of the slide, beside images."""

MAX_UNREADABLE_IN_A_ROW = 3
MAX_CALLS = 8
"""Calls of one message that are done."""

TURNS_FOR_ONE = MAX_INVALID_IN_A_ROW
STEPS_OF_A_TURN = 3  # ask, read, serve
LAST_TURNS = 2

NAN_BOX = (math.nan,) * 4
"""The box of an action whose numbers are beyond the convention, so that the environment counts an invalid request."""


class LocalizerState(TypedDict, total=False):
    """What goes from node to node, and from one action to the next. Images are references."""

    info: Info
    messages: tuple[Message, ...]
    said: tuple[ToolCall, ...]  # the calls of the last message, as the model wrote them
    queue: tuple[tuple[ToolCall, Call | str], ...]  # calls to be answered; what cannot be read is words for the model
    waiting: tuple[ToolCall, ExtractRoi | FinishAndReport, str | None] | None  # the last action's call, and its fault
    action: Action | None
    turns: int
    looks: int
    unreadable: int  # messages in a row
    invalid: int  # requests in a row


class Localizer(Agent):
    """The policy. Its endpoint's settings say which coordinates and which form of tools the model gets."""

    def __init__(self, *clients: Client) -> None:
        super().__init__(*clients)
        self.graph = self._graph()

    def _graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        graph = StateGraph(LocalizerState)
        graph.add_node("hear", self._hear)
        graph.add_node("ask", self._ask)
        graph.add_node("read", self._read)
        graph.add_node("serve", self._serve)
        graph.add_edge(START, "hear")
        graph.add_edge("hear", "serve")
        graph.add_edge("ask", "read")
        graph.add_edge("read", "serve")
        graph.add_conditional_edges("serve", lambda state: "ask" if state["action"] is None else END, ["ask", END])
        return graph.compile()

    def start(self, info: Info) -> None:
        self._state = LocalizerState(
            messages=(), said=(), queue=(), waiting=None, action=None, turns=0, looks=0, unreadable=0, invalid=0
        )
        self._most_turns = TURNS_FOR_ONE * (info["rois_left"] + 2)

    async def next_action(self, info: Info) -> Action:
        steps = 2 + STEPS_OF_A_TURN * (self._most_turns - self._state["turns"])  # hear and serve come first
        self._state = await run_graph(self.graph, {**self._state, "info": info, "action": None}, steps)
        return self._state["action"]

    # -- nodes --------------------------------------------------------------------------------------------------------

    async def _hear(self, state: LocalizerState) -> LocalizerState:
        if not state["messages"]:
            return LocalizerState(messages=await self._opening(state["info"]))
        assert state["waiting"] is not None, "the environment answers an action"
        call, asked, fault = state["waiting"]
        info, looks = state["info"], state["looks"]
        if "error" in info:
            invalid = state["invalid"] + 1
            told = self._invalid(asked, fault, info, invalid)
            messages = self._answered(state["messages"], call, told)
            return LocalizerState(messages=messages, waiting=None, invalid=invalid)
        looks += 1
        image = await self.speaker.images.ref(f"roi-{looks}")
        told = {
            "roi": self._coordinates.from_box(Box.of(info["roi"])),
            "magnification": image.magnification,
            "rois_left": info["rois_left"],
        }
        if "note" in info:
            told["note"] = "Clipped to the part inside the search box."
        words = f"ROI {looks} ({image.name}):"
        if info["rois_left"] == 0:
            told["next"] = "The budget of ROIs is spent: call finish_and_report now."
        messages = self._answered(state["messages"], call, told, words, image)
        return LocalizerState(messages=messages, waiting=None, looks=looks, invalid=0)

    async def _ask(self, state: LocalizerState) -> LocalizerState:
        messages, left = state["messages"], self._most_turns - state["turns"]
        if left == 0:  # LangGraph counts one node more than it lets end
            raise NoAnswer("budget_exhausted", f"{state['turns']} messages, and no report")
        must_finish = state["info"]["rois_left"] == 0 or left <= LAST_TURNS
        if left == LAST_TURNS:
            messages += (user("You have two messages left. Call finish_and_report now, with the best box you have."),)
        offered: dict[str, Any] = {}
        if self.speaker.endpoint.tools:
            offered = {"tools": TOOLS, "tool_choice": must_call(FINISH_AND_REPORT) if must_finish else "auto"}
        keep = self.speaker.endpoint.keep_images
        answer = await self.speaker.ask(messages, self._prompt, keep=keep, **offered)
        self.speaker.images.forget_but(images_to_send(messages, keep) | {self._shown})
        if answer.tool_calls:
            said = tuple(
                replace(call, id=call.id or f"call-{state['turns']}-{place}")
                for place, call in enumerate(answer.tool_calls[:MAX_CALLS])
            )
            spoken = Message("assistant", (answer.text,) if answer.text else (), tuple(map(_sound, said)))
        else:
            said = _calls_in_text(answer.text)[:MAX_CALLS]
            spoken = Message("assistant", (answer.text or "(nothing)",))
            if not said and (words := refused(answer)) is not None:
                raise NoAnswer("refused", words)
        return LocalizerState(messages=(*messages, spoken), said=said, turns=state["turns"] + 1)

    async def _read(self, state: LocalizerState) -> LocalizerState:
        queue = tuple((call, _parsed(call)) for call in state["said"])
        if any(not isinstance(parsed, str) for _, parsed in queue):
            return LocalizerState(queue=queue, unreadable=0)
        unreadable = state["unreadable"] + 1
        fault = str(queue[0][1]) if queue else NO_CALL
        if unreadable == MAX_UNREADABLE_IN_A_ROW:
            raise NoAnswer("unparsed", f"{unreadable} messages in a row without a call that can be read; last: {fault}")
        reminder = () if queue else (user(f"That cannot be used: {fault}"),)
        return LocalizerState(queue=queue, unreadable=unreadable, messages=state["messages"] + reminder)

    async def _serve(self, state: LocalizerState) -> LocalizerState:
        messages, queue = state["messages"], list(state["queue"])
        while queue:
            call, parsed = queue.pop(0)
            if isinstance(parsed, str):
                told = {"error": parsed, "rois_left": state["info"]["rois_left"]}
                messages = self._answered(messages, call, told)
            elif isinstance(parsed, GetImageInfo):
                facts = self._facts(state["info"])
                if any(self._shown in message.images for message in messages):
                    messages = self._answered(messages, call, facts | {"overview": "as shown above"})
                else:
                    messages = self._answered(messages, call, facts, "Overview of the search box:", self._shown)
            else:
                fault = self._coordinates.beyond(parsed.box)
                box_unit = NAN_BOX if fault else self._coordinates.to_unit(parsed.box)
                if isinstance(parsed, ExtractRoi):
                    action, self.remarks = extract_roi(box_unit), {"reason": parsed.reason}
                else:
                    action = finish_and_report(box_unit, parsed.confidence)
                    self.remarks = {"conclusion": parsed.conclusion}
                waiting = (call, parsed, fault)
                return LocalizerState(messages=messages, queue=tuple(queue), waiting=waiting, action=action)
        return LocalizerState(messages=messages, queue=())

    # -- words --------------------------------------------------------------------------------------------------------

    async def _opening(self, info: Info) -> tuple[Message, ...]:
        speaker = self.speaker
        self._shown = await speaker.images.ref(OVERVIEW)
        self._coordinates = Coordinates(speaker.endpoint.coordinates, Box.of(info["search_box"]), self._shown.size)
        speaker.told.update(METADATA)
        self._prompt = self.prompt(PROMPT)
        words = self._prompt.filled(
            rois=info["rois_left"], magnification=f"{info['magnification']:g}", meaning=self._coordinates.meaning
        )
        if not speaker.endpoint.tools:
            words += "\n\n" + self.prompt("tools-as-text-v1").filled(tools=tools_as_text())
        task = (
            f"Target: {info['target'] or '(not given)'}\n"
            f"Target magnification: {info['magnification']:g}x\n"
            f"Budget: {info['rois_left']} ROIs"
        )
        return system(words), user(task)

    def _facts(self, info: Info) -> dict[str, Any]:
        return facts_of(info, self._coordinates, self._shown, self.speaker.endpoint.max_image_px)

    def _invalid(self, asked: Call, fault: str | None, info: Info, invalid: int) -> dict[str, Any]:
        """What a model is told of an invalid request, in its own coordinates, with the bounds and the reason."""
        if fault is not None:
            why = f"{fault}."
        elif isinstance(asked, ExtractRoi) and info["rois_left"] == 0:
            why = "The budget of ROIs is spent: call finish_and_report."
        elif isinstance(asked, ExtractRoi):
            why = "The ROI lies outside the search box, or is under one level-0 pixel a side."
        else:
            why = "The centre of the box lies outside the search box."
        in_a_row = f"{invalid} of {MAX_INVALID_IN_A_ROW} invalid requests in a row that end the task."
        return {
            "error": f"{why} This is {in_a_row}",
            "rois_left": info["rois_left"],
            "coordinates": self._coordinates.facts(),
        }

    def _answered(
        self,
        messages: tuple[Message, ...],
        call: ToolCall,
        told: Mapping[str, Any],
        words: str = "",
        image: ImageRef | None = None,
    ) -> tuple[Message, ...]:
        """The messages with a call's answer, in the form that the endpoint takes: as a tool's or, for a call in text, a
        user's. Where several calls stood in one message, servers want all tools' messages before the next of a user."""
        text = json.dumps(told, ensure_ascii=False)
        if not call.id:
            return (*messages, user(f"{call.name} result:\n{text}", *(() if image is None else (words, image))))
        inside = image is not None and self.speaker.endpoint.tool_images
        tool = Message("tool", (text, words, image) if inside and image else (text,), call_id=call.id)
        end = 1 + max(place for place, each in enumerate(messages) if each.role in ("assistant", "tool"))
        after = () if image is None or inside else (user(words, image),)
        return (*messages[:end], tool, *messages[end:], *after)


def facts_of(info: Info, coordinates: Coordinates, overview: ImageRef, max_image_px: int) -> dict[str, Any]:
    """What get_image_info answers: no id, no file's name, nothing else of the slide."""
    return {
        "slide_size": list(info["slide_size"]),
        "mpp": info["mpp"],
        "search_box": list(info["search_box"]),
        "target": info["target"],
        "magnification": info["magnification"],
        "rois_left": info["rois_left"],
        "overview_size": list(overview.size),
        "overview_magnification": overview.magnification,
        "max_image_px": max_image_px,
        "coordinates": coordinates.facts(),
    }


def _calls_in_text(text: str) -> tuple[ToolCall, ...]:
    """Calls written as text; they have no id."""
    return tuple(ToolCall("", name, json.dumps(arguments)) for name, arguments in calls_in_text(text))


def _parsed(call: ToolCall) -> Call | str:
    try:
        return call_of(call.name, call.arguments)
    except ParseError as error:
        return str(error)


def _sound(call: ToolCall) -> ToolCall:
    """The call with arguments that a server can take back: some refuse a conversation that holds broken JSON."""
    if not call.arguments.strip():
        return replace(call, arguments="{}")
    try:
        sound = isinstance(json.loads(call.arguments, parse_constant=_no_constant), dict)
    except (ValueError, RecursionError):
        sound = False
    return call if sound else replace(call, arguments=json.dumps({"malformed": call.arguments}))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
