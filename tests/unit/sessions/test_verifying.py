"""What a host reports of a created session, against what was configured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_session_mcp.config.model import ExecutionProfile
from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.extensions.manifest import Identity
from pi_session_mcp.extensions.resolve import Entry, Place, Resolved
from pi_session_mcp.extensions.tools import ExtensionTool
from pi_session_mcp.host.protocol import BindResult, OpenResult, RegisteredTool
from pi_session_mcp.sessions.hosted.pinned import PinnedExtensions
from pi_session_mcp.sessions.hosted.verifying import refuse_conflict, verified, verified_bound
from pi_session_mcp.terms.pin import Pin
from pi_session_mcp.terms.selection import Selection

PROFILE = ExecutionProfile.model_validate(
    {"permission_profile": "coding", "provider": "p", "model": "m", "thinking_level": "high"}
)
TOOLS = ("read", "bash", "one")
REGISTERED = (ExtensionTool("one", 0),)
_FILE = Identity(1, 2, 3, 4)


def pinned(*names: str, entries: int = 1) -> PinnedExtensions:
    resolved = tuple(
        Resolved(Pin(name, "1.0.0"), Path("/x"), _FILE, (Entry(Path("/x/i.ts"), _FILE),) * entries) for name in names
    )
    return PinnedExtensions(resolved, Place(Path("/a"), ()))


def opened(**changed: Any) -> OpenResult:
    said = {"provider": "p", "model": "m", "thinkingLevel": "high"}
    more = {name: value for name, value in changed.items() if name not in said}
    selection = {name: changed.get(name, value) for name, value in said.items()}
    return OpenResult.model_validate({"activeTools": list(TOOLS), "selection": selection, **more})


def bound(**changed: Any) -> BindResult:
    tools = [RegisteredTool(name="one", entry=0)]
    more = {"extensionTools": tools, "hookErrors": 0, "mcpServers": 0, "failed": []}
    return BindResult.model_validate(opened().model_dump() | more | changed)


def refusal_of(call: Any) -> tuple[Code, Stage | None, str | None]:
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value.code, caught.value.stage, caught.value.extension


def test_what_was_configured_is_what_is_reported() -> None:
    selection = Selection("p", "m", "high")

    assert verified(PROFILE, TOOLS, opened(), may_narrow=False) == selection
    assert verified_bound(PROFILE, TOOLS, bound(), REGISTERED, pinned("ext")) == selection


@pytest.mark.parametrize("may_narrow", [False, True])
@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"provider": "q"}, Code.EXECUTION_SELECTION_MISMATCH),
        ({"model": "n"}, Code.EXECUTION_SELECTION_MISMATCH),
        ({"activeTools": [*TOOLS, "write"]}, Code.EXECUTION_SELECTION_MISMATCH),
        ({"thinkingLevel": "low"}, Code.THINKING_LEVEL_UNAVAILABLE),
    ],
)
def test_anything_else_is_refused(changed: dict[str, Any], code: Code, *, may_narrow: bool) -> None:
    said = refusal_of(lambda: verified(PROFILE, TOOLS, opened(**changed), may_narrow=may_narrow))

    assert said == (code, Stage.POSTCHECK, None)


def test_only_extensions_may_narrow_the_tools() -> None:
    narrower = opened(activeTools=["read"])

    assert verified(PROFILE, TOOLS, narrower, may_narrow=True)
    assert refusal_of(lambda: verified(PROFILE, TOOLS, narrower, may_narrow=False))[0] is (
        Code.EXECUTION_SELECTION_MISMATCH
    )


@pytest.mark.parametrize(
    ("active", "code"),
    [
        (["read", "bash"], Code.EXTERNAL_MCP_ACTIVATION_MISMATCH),
        (["read", "one"], Code.EXECUTION_SELECTION_MISMATCH),
        (["bash", "read"], Code.EXECUTION_SELECTION_MISMATCH),
        (["read", "bash", "two"], Code.EXECUTION_SELECTION_MISMATCH),
    ],
)
def test_granted_tools_that_are_the_only_ones_missing_have_a_code_of_their_own(active: list[str], code: Code) -> None:
    created = opened(activeTools=active)

    said = refusal_of(lambda: verified(PROFILE, TOOLS, created, may_narrow=False, granted=["one"]))

    assert said == (code, Stage.POSTCHECK, None)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"hookErrors": 1, "failed": [1]}, Code.EXTENSION_LOAD_FAILED),
        ({"mcpServers": 1, "failed": [1]}, Code.EXTENSION_LOAD_FAILED),
        ({"extensionTools": []}, Code.EXTENSION_TOOL_CONFLICT),
        (
            {"extensionTools": [RegisteredTool(name="one", entry=0), RegisteredTool(name="two", entry=1)]},
            Code.EXTENSION_TOOL_CONFLICT,
        ),
        ({"extensionTools": [RegisteredTool(name="one", entry=1)]}, Code.EXTENSION_TOOL_CONFLICT),
    ],
)
def test_what_extensions_may_not_do_while_binding_is_refused(changed: dict[str, Any], code: Code) -> None:
    said = refusal_of(lambda: verified_bound(PROFILE, TOOLS, bound(**changed), REGISTERED, pinned("a", "b")))

    assert said[:2] == (code, Stage.EXTENSION_BIND)
    assert said[2] in {"a@1.0.0", "b@1.0.0"}


def test_a_conflict_names_the_owner_of_the_tool() -> None:
    conflict = (ExtensionTool("one", 0), ExtensionTool("read", 2))

    said = refusal_of(lambda: refuse_conflict(conflict, (), pinned("a", "b", entries=2)))

    assert said == (Code.EXTENSION_TOOL_CONFLICT, Stage.EXTENSION_LOAD, "b@1.0.0")
    refuse_conflict(REGISTERED, ("mcp_s_t",), pinned("a"))


@pytest.mark.parametrize(
    ("entries", "extension"),
    [([], None), ([2], None), ([-1], None), ([-1, 1], "b@1.0.0"), ([0, 1], "a@1.0.0")],
)
def test_the_first_entry_that_exists_is_blamed(entries: list[int], extension: str | None) -> None:
    refusal = pinned("a", "b").refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_LOAD, entries=entries)

    assert refusal.extension == extension


def test_the_only_extension_is_blamed_whatever_the_host_says() -> None:
    assert pinned("a").refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_LOAD, entries=[99]).extension == "a@1.0.0"
