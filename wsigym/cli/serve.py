"""`wsigym serve-scripted`: a local chat-completions server without a model, for offline work and for tests."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from wsigym.errors import InvalidArgumentError

__all__ = ["serve_scripted"]

KINDS = (
    "late, 429, 500, drop, malformed-body, malformed-json, wrong-tool, out-of-range, nan, refusal, empty, "
    "never-finish, endless-thought"
)
"""Those of `wsigym.agents.scripted_server`, which is not imported for a help text."""


def serve_scripted(
    port: Annotated[int, typer.Option(help="Of 127.0.0.1; 0 takes a free one.")] = 0,
    seed: Annotated[int, typer.Option(help="Of its random answers, and of which requests go wrong.")] = 0,
    misbehave: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[=RATE]",
            help=f"What goes wrong: {KINDS}. RATE is 0 to 1 (default: 1, always) or every:N. May be repeated.",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="The model's name.")] = "scripted",
    tools: Annotated[
        Literal["yes", "ignore", "reject"],
        typer.Option(help="Tool calling: yes, ignore (text answers) or reject (status 400)."),
    ] = "yes",
    tool_images: Annotated[
        bool, typer.Option("--tool-images/--no-tool-images", help="Take images in messages of role tool.")
    ] = True,
    logprobs: Annotated[bool, typer.Option("--logprobs/--no-logprobs", help="Give log probabilities.")] = True,
    latency: Annotated[float, typer.Option(min=0, help="Seconds that every answer takes.")] = 0.0,
    late: Annotated[float, typer.Option(min=0, help="Seconds that a late answer takes more.")] = 5.0,
    retry_after: Annotated[float, typer.Option(min=0, help="Seconds that a 429 tells the client to wait.")] = 1.0,
    api_key_env: Annotated[
        str | None, typer.Option(help="The environment variable with the key that requests need (default: none).")
    ] = None,
    wire_log: Annotated[
        Path | None, typer.Option(help="Append each request's body to this file of JSON lines.")
    ] = None,
) -> None:
    """Serve a scripted model on 127.0.0.1 until Ctrl-C: the chat-completions protocol, without a model."""
    from wsigym.agents.scripted_server import Misbehaviour, ScriptedServer

    server = ScriptedServer(
        seed=seed,
        misbehave=[Misbehaviour.parse(text) for text in misbehave or []],
        port=port,
        model=model,
        api_key=_key(api_key_env),
        tools=tools,
        tool_images=tool_images,
        logprobs=logprobs,
        latency_s=latency,
        late_s=late,
        retry_after_s=retry_after,
        wire_log=wire_log,
    )
    try:
        with server:
            typer.echo(server.base_url)
            typer.echo(f"The scripted model {model!r} listens there; Ctrl-C ends it.", err=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        pass


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise InvalidArgumentError(f"--api-key-env {variable}: the environment has no such variable, or it is empty.")
    return os.environ[variable]
