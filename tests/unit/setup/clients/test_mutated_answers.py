"""Whatever is changed in an answer, it is not taken for our registration unless it still says just that."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_session_mcp.setup.clients import claude_code, codex, copilot
from pi_session_mcp.setup.clients.base import ClientOutput, Inspection, Seen
from pi_session_mcp.setup.targets import Target
from tests.unit.setup.clients.recordings import INTENT, gets

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.setup.registration import Registration

    Reader = Callable[[ClientOutput, Target, Registration], Inspection]

READERS: Final[dict[str, tuple[str, str, Reader]]] = {
    "claude-code:user": ("claude-code", "user", claude_code.read_inspection),
    "claude-code:local": ("claude-code", "local", claude_code.read_inspection),
    "claude-code:project": ("claude-code", "project", claude_code.read_inspection),
    "codex:user": ("codex", "user", codex.read_inspection),
    "copilot:user": ("github-copilot-cli", "user", copilot.read_inspection),
}
SETTINGS: Final = ("tools", "timeout", "enabled_tools", "disabled_tools", "startup_timeout_sec", "tool_timeout_sec")
PIECES: Final = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["\n", "\r", " ", "\t", "\0", "=", '"', "\\", "{", "}", ",", ":", "null", "true", "\x1b[0m", "\u2028", "\ufeff"]
    ),
    st.sampled_from(["    EXTRA=1\n", "  Timeout: 1ms\n", "  Args: serve\n", '"cwd": "/",', '"enabled": false,']),
)


def equivalents(name: str) -> list[str]:
    """Every recorded answer that means our registration at this target."""
    client, scope, read = READERS[name]
    target = Target(name.split(":")[0], scope)
    return [
        call.output.stdout.decode()
        for call in gets(client)
        if read(call.output, target, INTENT).seen is Seen.EQUIVALENT
    ]


def said(name: str, text: str) -> object:
    """What an answer says, but for what may be anything: the server's health, its owner's settings, and white space."""
    if name.startswith("claude-code"):
        text = re.sub(r"^  Timeout: [0-9]+ms\n", "", text, count=1, flags=re.MULTILINE)
        return re.sub(r"^  Status: [^\n]+\n(?:  Issue: [^\n]+\n)?", "", text, count=1, flags=re.MULTILINE)
    try:
        return json.dumps(_without_settings(json.loads(text)), sort_keys=True)
    except ValueError:
        return text


def _without_settings(document: dict[str, Any]) -> dict[str, Any]:
    entry = document.get("pi-session-mcp", document)
    for setting in SETTINGS:
        entry.pop(setting, None)
    return document


@pytest.mark.parametrize("name", READERS)
@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_a_changed_answer_is_never_equivalent(name: str, data: st.DataObject) -> None:
    client, scope, read = READERS[name]
    answer = data.draw(st.sampled_from(equivalents(name)))
    start = data.draw(st.integers(0, len(answer)))
    end = data.draw(st.integers(start, min(len(answer), start + data.draw(st.sampled_from([0, 1, 2, 10, 400])))))
    changed = answer[:start] + data.draw(PIECES) + answer[end:]

    output = ClientOutput(0, changed.encode("utf-8", "surrogatepass"), b"")
    inspection = read(output, Target(name.split(":")[0], scope), INTENT)

    if inspection.seen is Seen.EQUIVALENT:
        assert said(name, changed) == said(name, answer), client


@pytest.mark.parametrize("name", READERS)
@settings(deadline=None, max_examples=60)
@given(code=st.integers(-64, 255), stdout=st.binary(max_size=200), stderr=st.binary(max_size=200))
def test_noise_is_neither_our_registration_nor_its_absence(name: str, code: int, stdout: bytes, stderr: bytes) -> None:
    _, scope, read = READERS[name]

    inspection = read(ClientOutput(code, stdout, stderr), Target(name.split(":")[0], scope), INTENT)

    assert inspection == Inspection(Seen.UNSUPPORTED)


@pytest.mark.parametrize("name", READERS)
def test_every_cut_of_an_answer_is_unsupported(name: str) -> None:
    _, scope, read = READERS[name]
    answer = equivalents(name)[0]

    for length in range(len(answer) - 1):
        inspection = read(ClientOutput(0, answer[:length].encode(), b""), Target(name.split(":")[0], scope), INTENT)
        assert inspection.seen is Seen.UNSUPPORTED
