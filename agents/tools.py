"""The three tools of EviPathBench's agents, as servers with tool calling and as text-only servers get them.

    get_image_info()                                the facts of the task, and the overview
    extract_roi(x, y, w, h, reason)                 a closer look; spends one ROI of the budget
    finish_and_report(conclusion, bbox, confidence) the answer

Names and arguments are the paper's (arXiv 2607.19261); a box is x, y, w, h in the endpoint's convention.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["EXTRACT_ROI", "FINISH_AND_REPORT", "GET_IMAGE_INFO", "TOOLS", "must_call", "tools_as_text"]

GET_IMAGE_INFO, EXTRACT_ROI, FINISH_AND_REPORT = "get_image_info", "extract_roi", "finish_and_report"


def _tool(name: str, description: str, **properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _number(description: str) -> dict[str, Any]:
    return {"type": "number", "description": description}


TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        GET_IMAGE_INFO,
        "The facts of the task (slide size, microns per pixel, search box, target, magnification, ROIs left, "
        "coordinates) and the overview image of the search box. Free of charge.",
    ),
    _tool(
        EXTRACT_ROI,
        "Look at a region of interest inside the search box, at up to the target magnification. Spends one ROI of the "
        "budget. Smaller regions are shown in more detail.",
        x=_number("left edge, in the coordinates that you were told"),
        y=_number("top edge, in the same coordinates"),
        w=_number("width, in the same coordinates"),
        h=_number("height, in the same coordinates"),
        reason={"type": "string", "description": "why you look there, in one sentence"},
    ),
    _tool(
        FINISH_AND_REPORT,
        "Report the box that shows the target. Ends the task.",
        conclusion={"type": "string", "description": "what the box shows, in one or two sentences"},
        bbox={
            "type": "array",
            "items": {"type": "number"},
            "minItems": 4,
            "maxItems": 4,
            "description": "x, y, w, h in the coordinates that you were told",
        },
        confidence=_number("0 to 1: how likely the box is right"),
    ),
)
"""In the form that chat-completions servers take."""


def must_call(name: str) -> dict[str, Any]:
    """The tool choice that leaves a model only this tool."""
    return {"type": "function", "function": {"name": name}}


def tools_as_text() -> str:
    """The same tools for a system prompt: one line each, with the arguments by name."""
    lines = []
    for tool in TOOLS:
        function = tool["function"]
        arguments = {name: each.get("description", "") for name, each in function["parameters"]["properties"].items()}
        lines.append(f"{function['name']}: {function['description']}\n  arguments: {json.dumps(arguments)}")
    return "\n".join(lines)
