"""The chat protocol without a model: a pure function from a chat-completions request and a seed to the next message.

It reads what a model would read and nothing else: the conversation that it is sent, images included.

    offered the tools, or told of them in text   searches the nuclear stain: get_image_info, extract_roi ...,
                                                 finish_and_report
    "Request: propose"                           ranked candidates from the overview
    "Request: judge"                             a verdict on a look
    "Request: score tile", "score page"          Yes or No, and a score, of tiles
    "Request: rewrite"                           the question with other words before it, by the seed
    options "A. ..."                             a letter, by the seed
    how to answer an item without options        truth values, a diagnosis, a box, a number or terms, by the seed
    any other tool                               a call that its schema allows
    anything else                                a short text; of an image, its colours

It writes what it saw into the reasons of its calls, so that it goes on when old images are no longer sent. Of the
seed only the answers to items, and answers without an image to look at, depend.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from .scripted_chat import Conversation, Result, numbers, pixels_of
from .scripted_search import LOOK_SIDES, Density, Field, Search, densest, density_map, field_shares, ranked
from .tools import EXTRACT_ROI, FINISH_AND_REPORT, GET_IMAGE_INFO

__all__ = ["Reply", "next_message"]

HALF_SURE_AT_1X, HALF_SURE_POWER = 0.0165, 0.82
"""Mean nuclear density of a field at which a judgement is even, as it grows with magnification (more detail, less
stain is blurred): 0.035 at 2.5x, 0.11 at 10x, 0.34 at 40x, halfway between the annotated boxes of synthetic slides and
what lies beside them."""

LITTLE_TISSUE = 0.1
"""Under this share of stained pixels a look says nothing."""

TILE_SHARE = 0.5
"""The same for the mean of a whole tile, of which a part is enough."""

NOTE = re.compile(r"nuclear density ([\d.]+) in \[([^\]]+)\]")
"""How a reason keeps what a look showed."""

OPENINGS = ("From what is given", "Going by what is shown", "By what can be seen here", "Judging by the evidence")
"""What a question is rewritten with."""

OPTION = re.compile(r"^\s*\(?([A-Z])[.):]\s+\S", re.MULTILINE)


@dataclass(frozen=True)
class Reply:
    """What to answer: `text`, or a `call` by name with arguments, or `data` to be written as JSON in the text.

    `yes` is the probability of Yes where the answer begins with Yes or No.
    """

    text: str = ""
    call: tuple[str, dict[str, Any]] | None = None
    data: dict[str, Any] | None = None
    yes: float | None = None


def next_message(request: Mapping[str, Any], seed: int = 0) -> Reply:
    """The reply to a request body (messages, tools, tool_choice, logprobs).

    Raises `InvalidArgumentError` where a message or an image cannot be read.
    """
    conversation = Conversation.of(request["messages"])
    offered = {tool["function"]["name"]: tool["function"] for tool in request.get("tools") or ()}
    choice = request.get("tool_choice")
    if offered and choice != "none":
        return _with_tools(conversation, offered, choice, seed)
    return _in_text(conversation, bool(request.get("logprobs")), seed)


def _with_tools(conversation: Conversation, offered: Mapping[str, Any], choice: Any, seed: int) -> Reply:
    """`choice` may name one tool, which is then called."""
    if isinstance(choice, Mapping):
        name = choice["function"]["name"]
        offered = {name: offered[name]}
    if {EXTRACT_ROI, FINISH_AND_REPORT} & set(offered):
        return Reply(call=_search(conversation, offered))
    told = any(call.name in offered for call in conversation.calls)
    if told and not isinstance(choice, Mapping) and choice != "required":
        return _in_words(conversation, seed)
    name = next(iter(offered))
    return Reply(call=(name, _fitting(offered[name].get("parameters", {}))))


def _in_text(conversation: Conversation, logprobs: bool, seed: int) -> Reply:
    told = conversation.told
    request = re.search(r"^Request: (.+)$", told, re.MULTILINE)  # a reminder may follow it
    kind = request[1].strip() if request else ""
    if kind == "propose" and (info := _info(conversation)):
        return Reply(data=_proposal(info))
    if kind == "judge" and conversation.images:
        return Reply(data=_judgement(conversation))
    if kind == "score page":
        half = _tile_half_sure(conversation)
        tiles = [_tile_answer(place, url, half) for place, url in enumerate(conversation.images, start=1)]
        return Reply(data={"tiles": tiles})
    if kind == "score tile" and conversation.images:
        yes = _suspicion(conversation.images[-1], _tile_half_sure(conversation))
        return Reply(_yes_or_no(yes) if logprobs else f"{_yes_or_no(yes)} {yes:.3f}", yes=yes)
    if kind == "rewrite" and (question := re.search(r"^Question: (.+)$", told, re.MULTILINE)):
        opening = OPENINGS[_drawn(conversation, seed, len(OPENINGS))]
        return Reply(f"{opening}, {question[1][:1].lower()}{question[1][1:]}")
    if EXTRACT_ROI in told and FINISH_AND_REPORT in told:
        name, arguments = _search(conversation, (EXTRACT_ROI, FINISH_AND_REPORT))
        return Reply(data={"tool": name, "arguments": arguments})
    if (answer := _item_answer(conversation, seed)) is not None:
        return answer
    if options := OPTION.findall(conversation.last_text):
        return Reply(options[_drawn(conversation, seed, len(options))])
    if re.search(r"\bYes or No\b", conversation.last_text, re.IGNORECASE):
        yes = (0.5 + _drawn(conversation, seed, 1000)) / 1000
        return Reply(_yes_or_no(yes), yes=yes)
    return _in_words(conversation, seed)


def _drawn(conversation: Conversation, seed: int, count: int) -> int:
    """A number below `count` by the seed and what was asked."""
    digest = hashlib.sha256(f"{seed}\n{conversation.told}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


# The localizer -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Info:
    """What get_image_info told, and the frame in which boxes are written."""

    facts: Mapping[str, Any]
    frame: tuple[float, float, float, float]
    shares: tuple[float, float]
    overview: Density

    @property
    def decimals(self) -> int:
        """Whole numbers where the frame has 500 or more of them, else enough for a ten-thousandth of it."""
        side = max(self.frame[2:])
        return 0 if side >= 500 else math.ceil(math.log10(10_000 / side))

    def to_unit(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        left, top, width, height = self.frame
        return (box[0] - left) / width, (box[1] - top) / height, box[2] / width, box[3] / height

    def written(self, box: Sequence[float]) -> list[float]:
        """A box in 0..1 of the search box as the endpoint's convention writes it."""
        left, top, width, height = self.frame
        values = left + box[0] * width, top + box[1] * height, box[2] * width, box[3] * height
        return [round(value, self.decimals) if self.decimals else round(value) for value in values]


def _info(conversation: Conversation) -> _Info | None:
    """None until there are facts that can be used. The budget is that of the first time."""
    told = [result for result in conversation.results if "search_box" in result.facts]
    for result in told:
        facts = result.facts
        frame = _frame(facts.get("coordinates"))
        search_box = numbers(facts["search_box"], 4)
        scale = numbers([facts.get("mpp"), facts.get("magnification")], 2)
        if frame is None or search_box is None or scale is None or min(*search_box[2:], *scale) <= 0:
            continue
        shown = next((each.images[0] for each in told if each.images), None)
        overview = _density_of(shown) if shown else np.zeros((64, 64), np.float32)
        return _Info(facts, frame, field_shares(search_box, *scale), overview)
    return None


def _frame(coordinates: Any) -> tuple[float, float, float, float] | None:
    """(x, y, w, h) of the frame in its convention, or None where it was not told."""
    if not isinstance(coordinates, Mapping):
        return None
    edges = numbers([coordinates.get(name) for name in ("x_min", "y_min", "x_max", "y_max")], 4)
    if edges is None or edges[0] >= edges[2] or edges[1] >= edges[3]:
        return None
    return edges[0], edges[1], edges[2] - edges[0], edges[3] - edges[1]


def _search(conversation: Conversation, allowed: Sequence[str] | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The next call of the search. Only tools that are `allowed` are called, get_image_info apart."""
    info = _info(conversation)
    if info is None:
        if EXTRACT_ROI not in allowed:  # made to finish without ever having been told where
            return FINISH_AND_REPORT, {"conclusion": "nothing was shown", "bbox": [0, 0, 1, 1], "confidence": 0.0}
        return GET_IMAGE_INFO, {}
    answered = [result for result in conversation.results if "roi" in result.facts]
    looks = [info.to_unit(roi) for result in answered if (roi := numbers(result.facts["roi"], 4))]
    seen = _noted(conversation, info)
    fresh = _fresh(answered, info) if len(seen) < len(looks) else None
    if fresh is not None:
        seen.append(fresh)
    search = Search(info.shares, info.overview, looks, seen, _count(info.facts.get("rois_left")))
    note = f" The last look: {_note(fresh, info)}." if fresh else ""
    following = search.next_look() if EXTRACT_ROI in allowed and _rois_left(conversation) > 0 else None
    if following is None and FINISH_AND_REPORT in allowed:
        field, confidence = search.answer()
        conclusion = f"The densest field of {len(looks)} looks: {_note(field, info)}."
        return FINISH_AND_REPORT, {
            "conclusion": conclusion,
            "bbox": info.written(field.box),
            "confidence": round(confidence, 3),
        }
    field, why = following or (search.answer()[0], "only a look is allowed")
    x, y, w, h = info.written(field.look_box)
    return EXTRACT_ROI, {"x": x, "y": y, "w": w, "h": h, "reason": f"Looking at {why}.{note}"}


def _rois_left(conversation: Conversation) -> int:
    """As last told."""
    left = [result.facts["rois_left"] for result in conversation.results if "rois_left" in result.facts]
    return _count(left[-1]) if left else 0


def _count(value: Any) -> int:
    """A whole number of 0 or more; 0 for anything else, and never more than 1,000."""
    return max(0, min(1000, value)) if isinstance(value, int) else 0


def _note(field: Field, info: _Info) -> str:
    return f"nuclear density {field.density:.4f} in {info.written(field.box)}"


def _noted(conversation: Conversation, info: _Info) -> list[Field]:
    """What earlier looks showed, by the reasons of the calls after them; a call that was repeated counts once."""
    found: dict[tuple[str, str], Field] = {}
    for call in conversation.calls:
        for density, box in NOTE.findall(str(call.arguments.get("reason"))):
            values = numbers(_floats(box), 4)
            if call.name == EXTRACT_ROI and values:
                found[density, box] = Field(info.to_unit(values), float(density))
    return list(found.values())


def _floats(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return []


def _fresh(answered: Sequence[Result], info: _Info) -> Field | None:
    """The densest field of the last look; by the overview where its image was not sent."""
    roi = numbers(answered[-1].facts["roi"], 4)
    if roi is None:
        return None
    box = info.to_unit(roi)
    if answered[-1].images:
        return densest(_density_of(answered[-1].images[-1]), _shares_in(box, info)).inside(box)
    rows, columns = info.overview.shape
    top, left = int(box[1] * rows), int(box[0] * columns)
    part = info.overview[top : math.ceil((box[1] + box[3]) * rows), left : math.ceil((box[0] + box[2]) * columns)]
    return densest(part, _shares_in(box, info)).inside(box) if part.size else None


def _shares_in(box: Sequence[float], info: _Info) -> tuple[float, float]:
    """A field's sides in 0..1 of a look's, at most all of it."""
    return min(1.0, info.shares[0] / box[2]), min(1.0, info.shares[1] / box[3])


@lru_cache(maxsize=128)
def _density_of(url: str) -> Density:
    """Kept for the images that the next requests show again: at most 128 maps of 150 kB, and their URLs."""
    return density_map(pixels_of(url))


# The verifier ------------------------------------------------------------------------------------------------------


def _proposal(info: _Info) -> dict[str, Any]:
    """As many candidates as are wanted, none where a candidate was judged before."""
    count = _count(info.facts.get("candidates_wanted")) or 1
    judged = [info.to_unit(box) for each in _mappings(info.facts.get("judged")) if (box := numbers(_box_in(each), 4))]
    known = [Field(box, 0.0) for box in judged]
    half = _half_sure(info.facts["magnification"])
    fields = (field for field in ranked(info.overview, info.shares) if all(field.apart_from(old) for old in known))
    return {
        "candidates": [
            {
                "bbox": info.written(field.look_box),
                "confidence": round(_sureness(field.density, half), 3),
                "reason": f"nuclear density {field.density:.3f} in the overview",
            }
            for field in islice(fields, count)
        ]
    }


def _mappings(values: Any) -> list[Mapping[str, Any]]:
    return [each for each in values if isinstance(each, Mapping)] if isinstance(values, list) else []


def _box_in(facts: Mapping[str, Any]) -> Any:
    return facts.get("bbox", facts.get("box"))


def _judgement(conversation: Conversation) -> dict[str, Any]:
    """Of the last image, shown with the margin that candidates have: how nuclear its densest field is, and where."""
    url = conversation.images[-1]
    pixels = pixels_of(url)
    shares = 1 / LOOK_SIDES, 1 / LOOK_SIDES
    field = densest(_density_of(url), shares)
    magnification = _told_number(conversation, "magnification")
    sureness = _sureness(field.density, _half_sure(magnification))
    if _stained_share(pixels) < LITTLE_TISSUE:
        verdict, confidence, reason = "uninformative", 1.0, "hardly any tissue"
    else:
        verdict = "supports" if sureness >= 0.5 else "conflicts"
        confidence = max(sureness, 1 - sureness)
        reason = f"nuclear density {field.density:.3f}"
    frame = next((found for result in conversation.results if (found := _frame(result.facts.get("coordinates")))), None)
    box = None
    if frame is not None and verdict == "supports":
        box = _Info({}, frame, shares, _density_of(url)).written(field.box)
    return {"verdict": verdict, "confidence": round(confidence, 3), "bbox": box, "reason": reason}


def _stained_share(pixels: np.ndarray[Any, Any]) -> float:
    """Share of pixels that let through more red or blue than green, by a tenth of the range: stain, not glass."""
    values = pixels.astype(np.int16)
    return float((values.max(axis=2) - values.min(axis=2) > 25).mean())


def _half_sure(magnification: float) -> float:
    return float(HALF_SURE_AT_1X * max(magnification, 1.0) ** HALF_SURE_POWER)


def _told_number(conversation: Conversation, name: str, otherwise: float = 10.0) -> float:
    """The last number of that name among the facts."""
    told = [values[0] for result in conversation.results if (values := numbers([result.facts.get(name)], 1))]
    return told[-1] if told else otherwise


def _sureness(density: float, half: float) -> float:
    """0 for no nuclear stain, 0.5 at `half`, towards 1 beyond."""
    return density / (density + half)


# The tile scorer ---------------------------------------------------------------------------------------------------


def _tile_half_sure(conversation: Conversation) -> float:
    return TILE_SHARE * _half_sure(_told_number(conversation, "magnification"))


def _suspicion(url: str, half: float) -> float:
    return _sureness(float(_density_of(url).mean()), half)


def _yes_or_no(yes: float) -> str:
    return "Yes" if yes >= 0.5 else "No"


def _tile_answer(place: int, url: str, half: float) -> dict[str, Any]:
    yes = _suspicion(url, half)
    return {"tile": place, "answer": _yes_or_no(yes), "score": round(yes, 3)}


# Items without options ---------------------------------------------------------------------------------------------

TRUTH = "true/false"
"""How an item's form of answer writes a truth value that is asked for."""

DIAGNOSES = ("Adenocarcinoma", "Squamous cell carcinoma", "Hyperplasia", "Chronic inflammation")
TERMS = ("tumour cell", "lymphocyte", "epithelial cell", "stromal cell")

MAX_COUNT = 20


def _item_answer(conversation: Conversation, seed: int) -> Reply | None:
    """An answer of the form that the last paragraph asks for, by lot; None where it asks for none of these."""
    words = conversation.last_text.rsplit("\n\n", 1)[-1]
    asked = words.count(TRUTH)
    if asked and '"answers"' in words:
        drawn = _drawn(conversation, seed, 2**asked)
        return Reply(data={"answers": [bool(drawn >> place & 1) for place in range(asked)]})
    if '"diagnosis"' in words and '"differential"' in words:
        first = _drawn(conversation, seed, len(DIAGNOSES))
        named = [DIAGNOSES[(first + place) % len(DIAGNOSES)] for place in range(3)]
        confidence = _drawn(conversation, seed, 101)
        return Reply(data={"diagnosis": named[0], "differential": named[1:], "confidence": confidence})
    if "list of boxes" in words:
        x, y = divmod(_drawn(conversation, seed, 10_000), 100)
        return Reply(f"[[{5 * x}, {5 * y}, {5 * x + 500}, {5 * y + 500}]]")
    if "one whole number" in words:
        return Reply(str(_drawn(conversation, seed, MAX_COUNT + 1)))
    if "list of standard terms" in words:
        first = _drawn(conversation, seed, len(TERMS))
        return Reply(", ".join((*TERMS, *TERMS)[first : first + 2]))
    return None


# Anything else -----------------------------------------------------------------------------------------------------


def _in_words(conversation: Conversation, seed: int) -> Reply:
    if not conversation.images:
        return Reply("ready: this is a scripted model, which answers the requests of wsigym's agents and no others.")
    pixels = pixels_of(conversation.images[-1])
    height, width = pixels.shape[:2]
    left, right = (_colour(half) for half in np.array_split(pixels, 2, axis=1))
    return Reply(f"{left} on the left, {right} on the right: an image of {width} x {height} pixels.")


COLOURS = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "grey": (128, 128, 128),
    "red": (220, 30, 30),
    "green": (30, 160, 30),
    "blue": (30, 30, 220),
    "yellow": (240, 230, 40),
    "pink": (225, 160, 195),
    "purple": (120, 70, 150),
}


def _colour(pixels: np.ndarray[Any, Any]) -> str:
    """The name of the nearest colour to the mean."""
    if not pixels.size:
        return "nothing"
    mean = pixels.reshape(-1, 3).mean(axis=0)
    return min(COLOURS, key=lambda name: float(np.abs(mean - COLOURS[name]).sum()))


def _fitting(schema: Mapping[str, Any]) -> Any:
    """The least that a JSON schema allows: the first of an enum, required properties only."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        required = schema.get("required", ())
        return {name: _fitting(schema.get("properties", {}).get(name, {"type": "string"})) for name in required}
    if kind == "array":
        return [_fitting(schema.get("items", {"type": "number"}))] * int(schema.get("minItems", 0))
    return {"string": "scripted", "number": 0, "integer": 0, "boolean": False}.get(kind)
