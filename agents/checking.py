"""What a model's server can do, found out with a handful of small requests. No slide is involved."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wsigym.errors import EndpointError

from .answers import Answer, ToolCall
from .client import Client, ImagesSent, Turn
from .egress import Place
from .endpoints import Endpoint

__all__ = ["Finding", "Report", "check_endpoint"]

Verdict = Literal["yes", "no", "unsure"]

PICTURE_PX = 224
"""Side of the test picture: 8 x 28, a size that every image model takes."""

TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_image_info",
        "description": "Size of the slide, and what is left to spend.",
        "parameters": {"type": "object", "properties": {}},
    },
}


@dataclass(frozen=True)
class Finding:
    """One thing that was tried. `needed` where the agents need it as the endpoint is set."""

    what: str
    verdict: Verdict
    needed: bool
    told: str
    seconds: float | None = None


@dataclass(frozen=True)
class Report:
    """All that was found. `usable` where nothing needed is missing."""

    endpoint: Endpoint
    place: Place
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        return not any(finding.needed and finding.verdict == "no" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """For machines; it holds the name of the key's variable, never the key."""
        return {
            "endpoint": self.endpoint.model_dump(mode="json"),
            "place": self.place,
            "usable": self.usable,
            "findings": [asdict(finding) for finding in self.findings],
        }


async def check_endpoint(endpoint: Endpoint) -> Report:
    """Try text, an image, a tool call, an image in a tool's message, and logprobs, one try each.

    Raises `EndpointError` where not even text is answered; what else a server refuses is a finding.
    """
    client = Client(endpoint.model_copy(update={"retries": 0}))
    try:
        return await _Check(client).run()
    finally:
        await client.close()


class _Check:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.endpoint = client.endpoint
        self.turns = 0

    async def run(self) -> Report:
        text = await self._ask([_user("Answer with the one word: ready")])
        findings = [await self._models(), *self._text(text), await self._image()]
        call, finding = await self._tool()
        findings.append(finding)
        if call is not None:
            findings.append(await self._tool_image(call))
        findings.append(await self._logprobs())
        return Report(self.endpoint, self.client.place, tuple(findings))

    async def _models(self) -> Finding:
        try:
            listed = await self.client.models()
        except EndpointError as error:
            return Finding("model list", "no", False, str(error))
        if not listed:
            return Finding("model list", "no", False, "the server lists no models")
        if self.endpoint.model not in listed:
            return Finding("model list", "unsure", False, f"not listed; there are {', '.join(listed[:20])}")
        return Finding("model list", "yes", False, f"{self.endpoint.model} is listed")

    def _text(self, answer: Answer) -> list[Finding]:
        request = answer.request
        said = "made to answer at its token limit: " if request.forced else ""
        said += (
            repr(_short(answer.text)) if answer.text else f"an empty answer (it ended with {answer.finish_reason!r})"
        )
        counted = request.tokens_in is not None and request.tokens_out is not None
        usage = f"{request.tokens_in} in, {request.tokens_out} out" if counted else "the server counts no tokens"
        return [
            Finding("text", "yes" if answer.text else "unsure", True, said, request.seconds),
            Finding("usage", "yes" if counted else "no", False, usage),
        ]

    async def _image(self) -> Finding:
        question = "The picture has two halves. Which colour is the left half? Answer with one word."
        url, sent = _picture()
        try:
            answer = await self._ask([_user(question, url)], images=sent)
        except EndpointError as error:
            return Finding("image", "no", True, str(error))
        if "red" in answer.text.lower():
            return Finding("image", "yes", True, "it sees that the left half is red", answer.request.seconds)
        told = f"taken, but asked for the colour of a red half it says {_short(answer.text)!r}"
        return Finding("image", "unsure", True, told, answer.request.seconds)

    async def _tool(self) -> tuple[ToolCall | None, Finding]:
        needed = self.endpoint.tools
        todo = "set tools = false for this endpoint: they are then described in text" if needed else "not needed"
        try:
            answer = await self._ask([_user("Call the tool get_image_info.")], tools=[TOOL])
        except EndpointError as error:
            return None, Finding("tool call", "no", needed, f"{error} ({todo})")
        seconds = answer.request.seconds
        for call in answer.tool_calls:
            if call.name == "get_image_info":
                told = "called as asked" if needed else "called as asked: tools = true may be set"
                return call, Finding("tool call", "yes", needed, told, seconds)
        told = f"no call, but the text {_short(answer.text)!r} ({todo})"
        return None, Finding("tool call", "no", needed, told, seconds)

    async def _tool_image(self, call: ToolCall) -> Finding:
        """An image where only text is certain to be taken."""
        needed = self.endpoint.tool_images
        url, sent = _picture()
        function = {"name": call.name, "arguments": call.arguments or "{}"}
        messages = [
            _user("Call the tool get_image_info, then name a colour in the picture that it returns, in one word."),
            {"role": "assistant", "tool_calls": [{"id": call.id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": call.id, "content": _parts("The picture:", url)},
        ]
        try:
            answer = await self._ask(messages, tools=[TOOL], images=sent)
        except EndpointError as error:
            return Finding("image in a tool's message", "no", needed, str(error))
        seen = any(colour in answer.text.lower() for colour in ("red", "blue"))
        told = f"it says {_short(answer.text)!r} of red and blue halves"
        if seen and not needed:
            told += ": tool_images = true may be set"
        return Finding("image in a tool's message", "yes" if seen else "unsure", needed, told, answer.request.seconds)

    async def _logprobs(self) -> Finding:
        try:
            answer = await self._ask([_user("Is water wet? Answer with Yes or No.")], logprobs=True)
        except EndpointError as error:
            return Finding("logprobs", "no", False, str(error))
        if answer.first_token_logprobs is None:
            return Finding("logprobs", "no", False, "none given: scores are the numbers that the model states")
        told = f"given for {len(answer.first_token_logprobs)} candidates of the first token"
        return Finding("logprobs", "yes", False, told, answer.request.seconds)

    async def _ask(self, messages: Sequence[Mapping[str, Any]], **how: Any) -> Answer:
        self.turns += 1
        return await self.client.ask(Turn("endpoint check", self.turns), messages, **how)


def _user(text: str, image_url: str | None = None) -> dict[str, Any]:
    return {"role": "user", "content": text if image_url is None else _parts(text, image_url)}


def _parts(text: str, image_url: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": image_url}}]


def _picture() -> tuple[str, ImagesSent]:
    """A PNG with a red left half and a blue right half, as a data URL."""
    import io

    from PIL import Image

    picture = Image.new("RGB", (PICTURE_PX, PICTURE_PX), (220, 20, 20))
    picture.paste((20, 20, 220), (PICTURE_PX // 2, 0, PICTURE_PX, PICTURE_PX))
    encoded = io.BytesIO()
    picture.save(encoded, "PNG")
    content = encoded.getvalue()
    url = "data:image/png;base64," + base64.b64encode(content).decode()
    return url, ImagesSent(1, len(content), PICTURE_PX**2)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."
