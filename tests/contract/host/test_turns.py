"""A turn in the real Pi: what is asked, what is answered, what is told meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_session_mcp.demo.model import Call, Echo, Say

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from tests.support.raw_host import RawHost


def test_a_prompt_is_answered(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    model.on("hello", Say("good day"))

    assert host.session(workspace).opened().say("hello") == "good day"


def test_a_tools_result_reaches_the_model(host: RawHost, model: ScriptedModel, workspace: Path) -> None:
    (workspace / "note.txt").write_text("the note")
    model.on("read it", Call("read", {"path": "note.txt"}), Echo("it says "))

    assert host.session(workspace).opened().say("read it") == "it says the note"
