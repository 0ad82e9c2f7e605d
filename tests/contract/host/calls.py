"""Having the model call a tool, and seeing what it got back."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from pi_session_mcp.demo.model import Call, Echo

if TYPE_CHECKING:
    from pi_session_mcp.demo.model import ScriptedModel
    from tests.support.raw_host import RawSession

_numbers = count()


def result_of(session: RawSession, model: ScriptedModel, tool: str, **arguments: object) -> str:
    """What the tool tells the model, in a turn of its own that ends well."""
    prompt = f"call number {next(_numbers)}."
    model.on(prompt, Call(tool, arguments), Echo())
    return session.say(prompt)


def system_prompt(model: ScriptedModel) -> str:
    """The instructions in the latest request."""
    messages = model.requests[-1]["messages"]
    return "".join(str(message["content"]) for message in messages if message["role"] in {"system", "developer"})


def bound(session: RawSession) -> RawSession:
    """A session with extensions, ready for prompts."""
    session.opened().ask("bind")
    return session
