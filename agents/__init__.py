"""Agents: tool-using vision-language models as policies, and the model endpoints that they talk to."""

from .answers import Answer, ToolCall
from .client import Client, ImagesSent, Turn
from .endpoints import Endpoint
from .records import AgentRecord, RequestRecord

__all__ = ["AgentRecord", "Answer", "Client", "Endpoint", "ImagesSent", "RequestRecord", "ToolCall", "Turn"]
