"""What tests ask of a session with an extension, and the profiles that several of them name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.real import PROFILE as SCRIPTED
from tests.support.real import run_turn

if TYPE_CHECKING:
    from tests.support.extensions import Recorded
    from tests.support.shared_server import SharedServer

PLAIN = {**SCRIPTED, "extensions": []}
BAD_TREES = (
    *("other-version", "no-entries", "missing-entry", "escaping", "another-name", "no-json", "in-workspace"),
    "not-there",
)
"""Packages that no session gets, and profiles that want them."""


def start(shared: SharedServer, profile: str = "reader", **behaviour: Any) -> str:
    """The id of a session whose extension behaves so."""
    shared.extension.behave(**behaviour)
    return shared.world.start_session(shared.child, profile)


def text_of(child: Recorded, session: str, prompt: str) -> str:
    turn = run_turn(child, session, prompt)
    assert turn["state"] == "completed", turn
    return str(turn["assistantText"])


def refusal_of(child: Recorded, session: str, prompt: str) -> str:
    return str(child.call("pi_session_prompt", sessionId=session, prompt=prompt)["error"]["code"])


def close(child: Recorded, session: str) -> None:
    assert child.call("pi_session_close", sessionId=session)["ok"]
