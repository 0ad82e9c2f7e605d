"""What loading and binding extensions report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.contract.host.calls import bound
from tests.support.raw_host import CODING, RawHost, Refused

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from tests.contract.host.extensions import Extension, Notes


def test_loading_reports_extensions_and_their_tools(host: RawHost, extension: Extension, workspace: Path) -> None:
    first = extension('pi.registerTool(tool("one", "")); pi.registerTool(tool("two", ""));', "first.ts")
    second = extension('pi.registerTool(tool("three", ""));', "second.ts")

    loaded = host.session(workspace, entries=[first, second]).load()

    assert loaded == {
        "extensions": 2,
        "errors": 0,
        "failed": [],
        "leftOut": [],
        "tools": [{"name": "one", "entry": 0}, {"name": "two", "entry": 0}, {"name": "three", "entry": 1}],
    }


@pytest.mark.parametrize(
    "source",
    [
        "export default function ( {",
        "throw new Error('canary');",
        "export default 7;",
        "import 'a-package-that-is-not-there'; export default () => {};",
        "export default () => { throw new Error('canary'); };",
        "export default (pi) => pi.registerProvider('bad', { models: [{ id: 'x' }] });",
    ],
)
def test_a_broken_extension_is_an_error_without_its_text(
    host: RawHost, extension: Extension, tmp_path: Path, workspace: Path, source: str
) -> None:
    entry = tmp_path / "broken.ts"
    entry.write_text(source)

    loaded = host.session(workspace, entries=[extension(""), entry]).load()

    assert (loaded["errors"], loaded["failed"]) == (1, [1])
    assert "canary" not in json.dumps(loaded)


def test_an_entry_that_is_not_there_is_an_error(host: RawHost, tmp_path: Path, workspace: Path) -> None:
    loaded = host.session(workspace, entries=[tmp_path / "missing.ts"]).load()

    assert (loaded["extensions"], loaded["errors"], loaded["failed"]) == (0, 1, [0])


def test_an_extension_can_use_the_package_that_it_is_for(host: RawHost, tmp_path: Path, workspace: Path) -> None:
    entry = tmp_path / "typed.ts"
    entry.write_text(
        """
        import { defineTool, type ExtensionAPI } from "@earendil-works/pi-coding-agent";
        import { Type } from "typebox";
        const tool = defineTool({
          name: "typed", label: "t", description: "d", parameters: Type.Object({}),
          async execute() { return { content: [], details: undefined }; },
        });
        export default function (pi: ExtensionAPI) { pi.registerTool(tool); }
        """
    )

    loaded = host.session(workspace, entries=[entry]).load()

    assert (loaded["errors"], loaded["tools"]) == (0, [{"name": "typed", "entry": 0}])


def test_names_that_are_no_names_are_still_reported(host: RawHost, extension: Extension, workspace: Path) -> None:
    entry = extension('pi.registerTool(tool("*", "")); pi.registerTool(tool(undefined, ""));')

    assert host.session(workspace, entries=[entry]).load()["tools"] == [
        {"name": "*", "entry": 0},
        {"name": "", "entry": 0},
    ]


def test_what_a_package_holds_beside_its_entry_is_not_loaded(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path
) -> None:
    entry = extension("")
    for name, content in {
        "package.json": json.dumps({"pi": {"skills": ["skills"], "prompts": ["prompts"]}}),
        "skills/planted/SKILL.md": "---\nname: planted\ndescription: planted-skill\n---\nplanted",
        "prompts/planted.md": "planted-template",
    }.items():
        path = entry.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    bound(host.session(workspace, entries=[entry])).say("/planted")

    assert "planted-" not in json.dumps(model.requests)


def test_binding_starts_the_session_once_and_reports(
    host: RawHost, extension: Extension, notes: Notes, workspace: Path
) -> None:
    entry = extension(
        """
        pi.registerTool(tool("one", ""));
        pi.on("session_start", (event, ctx) => note(`${event.reason} ${ctx.mode} ${ctx.hasUI}`));
        """
    )
    session = host.session(workspace, entries=[entry], tools=[*CODING, "one"])
    session.opened()
    assert notes() == []

    reported = session.ask("bind")

    assert notes() == ["startup print false"]
    assert reported == {
        "selection": session.selection,
        "activeTools": [*CODING, "one"],
        "extensionTools": [{"name": "one", "entry": 0}],
        "hookErrors": 0,
        "mcpServers": 0,
        "failed": [],
    }
    with pytest.raises(Refused, match="order"):
        session.ask("bind")
    assert notes() == ["startup print false"]


def test_a_session_with_extensions_cannot_be_prompted_before_it_is_bound(
    host: RawHost, extension: Extension, workspace: Path
) -> None:
    session = host.session(workspace, entries=[extension("")]).opened()

    with pytest.raises(Refused, match="order"):
        session.ask("prompt", turn=1, text="hello")


def test_a_hook_that_fails_while_binding_is_counted(host: RawHost, extension: Extension, workspace: Path) -> None:
    entry = extension('pi.on("session_start", () => { throw new Error("canary"); });')
    session = host.session(workspace, entries=[entry]).opened()

    reported = session.ask("bind")

    assert (reported["hookErrors"], reported["failed"]) == (1, [0])
    assert "canary" not in json.dumps(reported)


@pytest.mark.parametrize("when", ["", 'pi.on("session_start", () => {'], ids=["at load", "at start"])
def test_an_mcp_server_of_an_extension_is_counted(
    host: RawHost, extension: Extension, tmp_path: Path, workspace: Path, when: str
) -> None:
    marker = tmp_path / "marker"
    register = f'pi.registerMcpServer("evil", {{ command: "touch", args: [{json.dumps(str(marker))}] }});'
    session = host.session(workspace, entries=[extension(when + register + ("});" if when else ""))]).opened()

    reported = session.ask("bind")
    assert (reported["mcpServers"], reported["failed"]) == (1, [0])
    assert not marker.exists()


def test_a_tool_that_is_registered_late_is_reported(host: RawHost, extension: Extension, workspace: Path) -> None:
    entry = extension('pi.on("session_start", () => pi.registerTool(tool("late", "")));')
    session = host.session(workspace, entries=[entry], tools=CODING)
    assert session.load()["tools"] == []
    session.open()

    reported = session.ask("bind")

    assert reported["extensionTools"] == [{"name": "late", "entry": 0}]
    assert reported["activeTools"] == list(CODING)
