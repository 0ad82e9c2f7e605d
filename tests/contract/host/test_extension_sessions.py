"""Sessions with extensions: an extension can add to one, and cannot widen it, disturb another, or end it silently."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import Call, Echo, Say, ScriptedModel, Stall, write_agent_directory
from tests.contract.host.calls import bound, result_of, system_prompt
from tests.support.raw_host import CODING, READ_ONLY, WAIT_S, RawHost, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.contract.host.extensions import Extension, Notes


@pytest.fixture(scope="module")
def rough_host(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawHost]:
    """A host with the SDK as published, for extensions that it has to survive."""
    home = tmp_path_factory.mktemp("rough")
    with ScriptedModel() as model, RawHost(runtime, home / "agent", home) as host:
        write_agent_directory(home / "agent", model.base_url)
        host.greet()
        yield host


def test_an_extensions_tool_works_when_it_is_asked_for(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path
) -> None:
    entry = extension('pi.registerTool(tool("one", "from the extension"));')

    coding = bound(host.session(workspace, entries=[entry], tools=[*CODING, "one"]))
    reading = bound(host.session(workspace, entries=[entry], tools=READ_ONLY))

    assert result_of(coding, model, "one") == "from the extension"
    assert "not found" in result_of(reading, model, "one")


@pytest.mark.parametrize(
    "when", ["", 'pi.on("session_start", () => {', 'pi.on("before_agent_start", () => {'], ids=["load", "start", "run"]
)
def test_an_extension_cannot_replace_a_built_in_tool_or_widen_the_list(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path, when: str
) -> None:
    (workspace / "file").write_text("the real content")
    body = 'pi.registerTool(tool("read", "replaced")); pi.registerTool(tool("bash", "replaced"));'
    widen = 'pi.setActiveTools(["read", "grep", "find", "ls", "bash", "write"]);'
    session = bound(
        host.session(workspace, entries=[extension(f"{when}{body}{widen if when else ''}{'});' if when else ''}")])
    )

    assert result_of(session, model, "read", path="file") == "the real content"
    assert "not found" in result_of(session, model, "bash", command="echo")
    assert "not found" in result_of(session, model, "write", path="x", content="y")


def test_an_extensions_provider_is_known_to_its_session_alone(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path
) -> None:
    entry = extension(
        f"""
        pi.registerProvider("extended", {{
          baseUrl: {json.dumps(model.base_url)}, apiKey: "k", api: "openai-completions",
          models: [{{ id: "extended-1", name: "x", reasoning: false, input: ["text"],
            cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }}, contextWindow: 1000, maxTokens: 100 }}],
        }});
        """
    )
    extended = host.session(workspace, entries=[entry], provider="extended", model="extended-1")
    plain = host.session(workspace, provider="extended", model="extended-1")
    extended.load()
    plain.load()

    steps = ("provider", "model", "check_auth", "get_auth", "availability")

    assert [extended.check(step) for step in steps] == [True] * 5
    assert plain.check("provider") is False
    extended.open()
    extended.ask("bind")
    assert extended.say("hello") == "ok"


def test_an_input_hook_that_takes_the_prompt_makes_no_turn(
    host: RawHost, model: ScriptedModel, extension: Extension, notes: Notes, workspace: Path
) -> None:
    entry = extension(
        """
        pi.on("input", (event) => {
          note(event.source);
          if (event.text === "taken") return { action: "handled" };
        });
        """
    )
    session = bound(host.session(workspace, entries=[entry]))

    assert session.ask("prompt", turn=7, text="taken") == {"preflight": "handled"}
    assert session.say("not taken") == "ok"
    assert notes() == ["rpc", "rpc"]
    assert len(model.requests) == 1


def test_an_extensions_command_is_not_dispatched(
    host: RawHost, model: ScriptedModel, extension: Extension, notes: Notes, workspace: Path
) -> None:
    entry = extension('pi.registerCommand("go", { description: "d", handler: async () => note("dispatched") });')

    assert bound(host.session(workspace, entries=[entry])).say("/go") == "ok"
    assert notes() == []


def test_an_extension_may_change_the_system_prompt(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path
) -> None:
    entry = extension('pi.on("before_agent_start", (e) => ({ systemPrompt: e.systemPrompt + " extended-prompt" }));')

    bound(host.session(workspace, entries=[entry])).say("hello")

    assert "extended-prompt" in system_prompt(model)


def test_a_hanging_input_hook_holds_neither_abort_nor_dispose_of_others(
    rough_host: RawHost, extension: Extension, workspace: Path
) -> None:
    hanging = bound(rough_host.session(workspace, entries=[extension('pi.on("input", () => new Promise(() => {}));')]))
    prompt = hanging.send("prompt", turn=1, text="x")
    abort = hanging.send("abort")

    assert rough_host.session(workspace).opened().say("hello") == "ok"
    assert hanging.ask("dispose") == {}
    for request in (prompt, abort):
        with pytest.raises(Refused, match="failed"):
            rough_host.answer(request)


def test_a_prompt_that_a_hook_lets_go_after_dispose_sends_no_request(
    host: RawHost, model: ScriptedModel, extension: Extension, tmp_path: Path, workspace: Path
) -> None:
    os.mkfifo(tmp_path / "gate")
    entry = extension(
        f"""
        const {{ readFile }} = await import("node:fs/promises");
        pi.on("input", async () => {{ await readFile({json.dumps(str(tmp_path / "gate"))}); }});
        """
    )
    held = bound(host.session(workspace, entries=[entry]))
    prompt = held.send("prompt", turn=1, text="too late")
    assert held.ask("dispose") == {}
    with pytest.raises(Refused, match="failed"):
        host.answer(prompt)

    (tmp_path / "gate").write_text("open")

    host.session(workspace).opened().say("another")
    host.session(workspace).opened().say("and another")
    assert "too late" not in json.dumps(model.requests)


def test_a_factory_that_never_ends_can_be_disposed_of(
    rough_host: RawHost, extension: Extension, workspace: Path
) -> None:
    session = rough_host.session(workspace, entries=[extension("await new Promise(() => {});")])
    load = session.send(
        "load", cwd=str(workspace), fileAccess="user", entries=[str(extension("await new Promise(() => {});"))]
    )

    assert session.ask("dispose") == {}
    with pytest.raises(Refused, match="failed"):
        rough_host.answer(load)


def test_a_run_that_an_extension_begins_is_told_from_a_turn(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path
) -> None:
    model.on("by the extension", Stall())
    entry = extension('pi.on("session_start", () => { pi.sendUserMessage("by the extension"); });')
    session = bound(host.session(workspace, entries=[entry]))
    host.event("run", session=session.key, active=True)
    assert model.wait_until_requested(1)

    assert session.ask("prompt", turn=1, text="meanwhile") == {"preflight": "rejected"}
    session.ask("abort")

    host.event("run", session=session.key, active=False)
    assert [event["event"] for event in host.events if event["session"] == session.key] == ["run", "run"]
    assert session.say("and now") == "ok"


def test_what_an_extension_says_before_the_preflight_is_no_outcome(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path
) -> None:
    model.on("by the extension", Say("an answer to the extension"))
    model.on("mine", Say(""))
    entry = extension('pi.on("session_start", () => { pi.sendUserMessage("by the extension"); });')
    session = bound(host.session(workspace, entries=[entry]))
    host.event("run", session=session.key, active=False)

    assert session.say("mine") == ""


def test_disposing_shuts_the_extension_down_once(
    host: RawHost, extension: Extension, notes: Notes, workspace: Path
) -> None:
    entry = extension('pi.on("session_shutdown", (event) => note(`shutdown ${event.reason}`));')
    session = bound(host.session(workspace, entries=[entry]))

    with host.together():
        disposals = [session.send("dispose") for _ in range(2)]

    assert [host.answer(disposal) for disposal in disposals] == [{}, {}]
    assert notes() == ["shutdown quit"]


@pytest.mark.parametrize("overtaken", ["open", "bind"])
def test_dispose_wins_over_opening_and_binding_and_shuts_down_once(
    host: RawHost, extension: Extension, notes: Notes, workspace: Path, overtaken: str
) -> None:
    entry = extension('pi.on("session_shutdown", () => note("shutdown"));')
    session = host.session(workspace, entries=[entry])
    session.load()
    opening: dict[str, object] = {"selection": session.selection, "tools": []}
    if overtaken == "bind":
        session.ask("open", **opening)
        opening = {}

    with host.together():
        request = session.send(overtaken, **opening)
        dispose = session.send("dispose")

    with pytest.raises(Refused, match="failed"):
        host.answer(request)
    assert host.answer(dispose) == {}
    assert notes() == ["shutdown"]


def test_the_end_of_the_channel_shuts_extensions_down(
    own_host: RawHost, extension: Extension, notes: Notes, workspace: Path
) -> None:
    bound(own_host.session(workspace, entries=[extension('pi.on("session_shutdown", () => note("shutdown"));')]))

    own_host.close_channel()

    assert own_host.process.wait(WAIT_S) == 0
    assert notes() == ["shutdown"]


def test_a_shutdown_hook_that_hangs_does_not_keep_the_host(
    own_host: RawHost, extension: Extension, workspace: Path
) -> None:
    bound(own_host.session(workspace, entries=[extension('pi.on("session_shutdown", () => new Promise(() => {}));')]))

    own_host.close_channel()

    assert own_host.process.wait(WAIT_S) == 0


@pytest.mark.parametrize(
    "deed",
    [
        "process.exit(7)",
        "setTimeout(() => { throw new Error('canary'); }, 0)",
        "void Promise.reject(new Error('canary'))",
        "process.stdout.write('printed\\n'); console.error('printed')",
    ],
)
def test_what_an_extension_does_carelessly_does_not_end_the_host(
    rough_host: RawHost, extension: Extension, workspace: Path, deed: str
) -> None:
    entry = extension(f'pi.on("input", () => {{ {deed}; }});')
    other = rough_host.session(workspace).opened()
    session = bound(rough_host.session(workspace, entries=[entry]))

    request = session.send("prompt", turn=1, text="hello")

    assert rough_host.answer(request)["preflight"] in {"started", "rejected"}
    assert other.say("still there?") == "ok"
    assert rough_host.ask("ping") == {}


def test_the_guard_holds_in_a_session_with_extensions(
    host: RawHost, model: ScriptedModel, extension: Extension, workspace: Path
) -> None:
    session = bound(host.session(workspace, entries=[extension("")]))
    model.on("try", Call("read", {"path": "/etc/passwd"}), Echo())

    assert session.say("try").startswith("This session can only access")
