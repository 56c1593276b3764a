"""What every agent is: a policy whose requests are counted, recorded and logged, and whose images go out by its rules.

Agent      the policy: the runner's hooks, and what is kept of an episode
Speaker    one endpoint in one episode: it sends messages, and knows what it has shown
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from langgraph.errors import GraphRecursionError
from langgraph.graph.state import CompiledStateGraph
from langsmith import tracing_context

from wsigym.envs.policy import Action, Info, NoAnswer, Observation
from wsigym.envs.views import ImageSource
from wsigym.errors import InvalidArgumentError, ParseError

from .client import Answer, Client, Turn
from .disclosure import Tissue, disclosed
from .images import EpisodeImages
from .messages import ImageRef, Message, by_reference, for_the_wire, images_to_send, user
from .parsing import is_refusal
from .prompting import Prompt, prompt
from .records import AgentRecord, RequestRecord

__all__ = ["Agent", "Speaker", "all_or_none", "refused", "run_graph"]

T = TypeVar("T")


class Speaker:
    """One endpoint in one episode."""

    def __init__(self, client: Client, episode: _Episode) -> None:
        self.client, self.endpoint = client, client.endpoint
        self.images = EpisodeImages(episode.source, client.endpoint)
        self.shown: set[ImageRef] = set()
        self.told: set[str] = set()
        self._episode = episode

    async def ask(
        self,
        messages: Sequence[Message],
        instructions: Prompt | None,
        *,
        keep: int,
        turn: int | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        logprobs: bool = False,
    ) -> Answer:
        """The answer to a conversation, of whose images the overview and the last `keep` are sent (see messages.py).

        `turn` is one taken by `episode.next_turn`; by default the next. Requests of one episode that are in flight
        together take theirs beforehand, so that a run that is taken up again asks the same under the same number.
        """
        number = self._episode.next_turn() if turn is None else turn
        sent = images_to_send(messages, keep)
        in_order = [image for message in messages for image in message.images if image in sent]
        self.shown.update(sent)
        answered = max((index + 1 for index, each in enumerate(messages) if each.role == "assistant"), default=0)
        answer = await self.client.ask(
            Turn(self._episode.key, number),
            for_the_wire(messages, sent, self.images.url),
            tools=tools,
            tool_choice=tool_choice,
            logprobs=logprobs,
            transcript=by_reference(messages[answered:]),
            images=self.images.sent(in_order),
            prompt_sha256=instructions.sha256 if instructions else None,
        )
        self._episode.requests[number] = answer.request
        return answer

    async def ask_for(
        self,
        messages: Sequence[Message],
        instructions: Prompt | None,
        read: Callable[[Answer], T],
        *,
        turns: tuple[int, int] | None = None,
        logprobs: bool = False,
    ) -> T | NoAnswer:
        """What `read` makes of the answer to a request that stands for itself, all of whose images are sent.

        Where it raises `ParseError`, its words go back to the model, once.

        Returns, and does not raise, the `NoAnswer` of a model that declines or cannot be read: it is for the agent to
        say what that ends. `turns` are the numbers of the two requests (see `ask`).
        """
        first, second = turns or (None, None)
        keep = sum(len(message.images) for message in messages)
        answer = await self.ask(messages, instructions, keep=keep, turn=first, logprobs=logprobs)
        try:
            return read(answer)
        except ParseError as error:
            fault = str(error)
        if (words := refused(answer)) is not None:
            return NoAnswer("refused", words)
        again = (*messages, Message("assistant", (answer.text or "(nothing)",)), user(f"That cannot be used: {fault}"))
        answer = await self.ask(again, instructions, keep=keep, turn=second, logprobs=logprobs)
        try:
            return read(answer)
        except ParseError as error:
            words = refused(answer)
            return NoAnswer("unparsed", str(error)) if words is None else NoAnswer("refused", words)


class _Episode:
    """What is kept of one episode while it runs."""

    def __init__(self, key: str, source: ImageSource) -> None:
        self.key, self.source = key, source
        self.turns = 0
        self.requests: dict[int, RequestRecord] = {}
        self.prompts: dict[str, str] = {}
        self.checkpoints: list[dict[str, Any]] = []
        self.speakers: list[Speaker] = []
        self.tissue: Tissue | None = None
        self.end_reason: str | None = None

    def next_turn(self) -> int:
        """The number of the next request."""
        self.turns += 1
        return self.turns - 1


class Agent:
    """Base of the agents: a policy with an async `act`, that keeps nothing from one episode to the next."""

    has_overview = True
    """Whether the environment has one; the share of tissue that was disclosed is counted on it."""

    def __init__(self, *clients: Client) -> None:
        self._clients = clients
        self._key = ""
        self._source: ImageSource | None = None
        self._episode: _Episode | None = None
        self.remarks: dict[str, str | None] = {}

    # -- the runner's hooks, in this order ----------------------------------------------------------------------------

    def begin(self, key: str) -> None:
        self._key = key

    def see_images(self, source: ImageSource) -> None:
        self._source = source

    def reset(self, observation: Observation, info: Info) -> None:
        if self._source is None:
            raise InvalidArgumentError("an agent needs images: call see_images(source) before reset().")
        self._episode = _Episode(self._key, self._source)
        self._episode.speakers = [Speaker(client, self._episode) for client in self._clients]
        self.remarks = {}
        self.start(info)

    async def act(self, observation: Observation, info: Info) -> Action:
        self.remarks = {}
        try:
            # Else LangSmith's tracing, which one environment variable turns on, would send the conversation away.
            with tracing_context(enabled=False):
                if self.has_overview and self.episode.tissue is None:
                    self.episode.tissue = await asyncio.to_thread(Tissue.of, self.episode.source)
                return await self.next_action(info)
        except NoAnswer as error:
            self.episode.end_reason = str(error)
            raise

    def record(self) -> AgentRecord | None:
        """What is kept of the episode, once: the episode is let go of."""
        episode, self._episode, self._source = self._episode, None, None
        if episode is None:
            return None
        return AgentRecord(
            requests=tuple(episode.requests[turn] for turn in sorted(episode.requests)),
            endpoints={speaker.endpoint.name: speaker.client.place for speaker in episode.speakers},
            prompts=dict(sorted(episode.prompts.items())),
            disclosure={
                speaker.endpoint.name: disclosed(speaker.shown, speaker.told, episode.tissue)
                for speaker in episode.speakers
            },
            checkpoints=tuple(episode.checkpoints),
            end_reason=episode.end_reason,
        )

    # -- for the agents -----------------------------------------------------------------------------------------------

    def start(self, info: Info) -> None:
        """Set up a new episode's state from its first info."""
        raise NotImplementedError

    async def next_action(self, info: Info) -> Action:
        """Run the graph from what the environment now says to the next action."""
        raise NotImplementedError

    @property
    def episode(self) -> _Episode:
        assert self._episode is not None, "reset() comes before act()"
        return self._episode

    @property
    def speaker(self) -> Speaker:
        """The first endpoint's."""
        return self.episode.speakers[0]

    def prompt(self, name: str) -> Prompt:
        """A prompt's file, noted in the record."""
        found = prompt(name)
        self.episode.prompts[found.name] = found.sha256
        return found


async def run_graph(graph: CompiledStateGraph[Any, Any, Any, Any], state: Any, steps: int) -> Any:
    """The state that the graph ends in, within so many steps (nodes run); more raise `NoAnswer`."""
    try:
        return await graph.ainvoke(state, {"recursion_limit": steps + 1})
    except GraphRecursionError:
        raise NoAnswer("budget_exhausted", "more turns of the model than the budget allows") from None


async def all_or_none(coroutines: Iterable[Coroutine[Any, Any, T]], at_once: int) -> list[T]:
    """The results in order, with at most so many running; where one raises, the others are stopped and it is raised."""
    gate = asyncio.Semaphore(at_once)

    async def gated(coroutine: Coroutine[Any, Any, T]) -> T:
        async with gate:
            return await coroutine

    given = list(coroutines)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(gated(coroutine)) for coroutine in given]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        for coroutine in given:
            coroutine.close()  # one that never began would warn
    return [task.result() for task in tasks]


def refused(answer: Answer) -> str | None:
    """The words of a refusal, the server's or a phrase of the list; None where the answer is none."""
    return answer.refusal or (answer.text[:200] if is_refusal(answer.text) else None)
