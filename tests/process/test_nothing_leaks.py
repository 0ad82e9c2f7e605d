"""No path, prompt, credential, provider's text or variable gets out, whatever goes wrong.

Every canary is a word that the program is given and must not say; all that it says is searched for all of them.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pi_session_mcp.demo.model import Call, Say, write_agent_directory
from tests.support.environment import ensure_installed
from tests.support.model_steps import Drop, Fail, Lie
from tests.support.real import RealWorld

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.process.client import Child

PATH = "canary-path"
KEY = "canary-key"
PROMPT = "canary-prompt"
PROVIDER_TEXT = "canary-provider-text"
VARIABLE = "canary-variable"
FILE_TEXT = "canary-file-text"
COMMAND = "canary-command"
CANARIES = (PATH, KEY, PROMPT, PROVIDER_TEXT, VARIABLE, FILE_TEXT, COMMAND)


@contextmanager
def world_below(directory: Path) -> Iterator[RealWorld]:
    with RealWorld(directory / PATH, ensure_installed()) as made:
        write_agent_directory(made.agent_directory, made.model.base_url, api_key=KEY)
        (made.workspace / "secret.txt").write_text(FILE_TEXT)
        yield made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RealWorld]:
    """A world for one test, which may break it."""
    with world_below(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWorld]:
    """A world in which all is well."""
    with world_below(tmp_path_factory.mktemp("whole")) as made:
        yield made


@pytest.fixture(scope="module")
def child(whole: RealWorld) -> Iterator[Child]:
    """Its server. What it says last is searched as well."""
    child = whole.serve(CANARY=VARIABLE, OPENAI_API_KEY=KEY)
    yield child
    assert_silent(said_by(child))


def said_by(child: Child) -> str:
    """Everything on stdout that was not read yet, and on stderr; ends the server."""
    child.close_stdin()
    return json.dumps(child.rest()) + child.stderr.decode()


def command_lines(child: Child) -> str:
    tree = [psutil.Process(child.process.pid), *psutil.Process(child.process.pid).children(recursive=True)]
    return "\n".join(word for process in tree for word in process.cmdline())


def assert_silent(text: str) -> None:
    assert [canary for canary in CANARIES if canary in text] == []


def call(child: Child, tool: str, **arguments: Any) -> str:
    """The whole answer of a tool, as it came."""
    return json.dumps(child.request("tools/call", {"name": tool, "arguments": arguments}))


@pytest.mark.parametrize(
    "steps",
    [
        (Fail(401, f'{{"error": {{"message": "{PROVIDER_TEXT}"}}}}'),),
        (Fail(400, PROVIDER_TEXT),),
        (Lie(),),
        (Drop(PROVIDER_TEXT), Fail(400, PROVIDER_TEXT)),
        (Call("bash", {"command": f"echo {COMMAND}; cat {PATH}"}), Say("done")),
        (Call("read", {"path": "secret.txt"}), Call("read", {"path": f"/{PATH}"}), Say("done")),
        (Call(PROVIDER_TEXT, {PROVIDER_TEXT: PROVIDER_TEXT}), Say("done")),
    ],
    ids=lambda steps: "-".join(type(step).__name__.lower() for step in steps),
)
def test_a_turn_says_no_canary_however_it_ends(whole: RealWorld, child: Child, steps: tuple[Any, ...]) -> None:
    whole.model.on(PROMPT, *steps)
    said = call(child, "pi_capabilities_get")
    session = whole.start_session(child, "coder")
    said += call(child, "pi_session_prompt", sessionId=session, prompt=PROMPT, waitMs=50_000)
    said += call(child, "pi_session_list") + call(child, "pi_session_get", sessionId=session)
    said += command_lines(child)
    said += call(child, "pi_session_abort", sessionId=session) + call(child, "pi_session_close", sessionId=session)
    assert_silent(said + child.stderr.decode())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("pi_session_start", {"workspace": PATH}),
        ("pi_session_start", {"workspace": "project", "executionProfile": PROVIDER_TEXT}),
        ("pi_session_start", {"workspace": "project", KEY: KEY}),
        ("pi_session_get", {"sessionId": PROMPT}),
        ("pi_session_prompt", {"sessionId": "0" * 36, "prompt": PROMPT}),
        ("pi_turn_get", {"sessionId": "a" * 36, "turnId": PROMPT}),
        ("pi_capabilities_get", {PATH: 1}),
        (COMMAND, {}),
    ],
)
def test_a_refused_call_says_no_canary(child: Child, tool: str, arguments: dict[str, Any]) -> None:
    assert_silent(call(child, tool, **arguments) + child.stderr.decode())


@pytest.mark.parametrize("name", ["models.json", "auth.json"])
def test_broken_files_of_pi_are_refused_without_a_word_of_them(world: RealWorld, name: str) -> None:
    (world.agent_directory / name).write_text(f'{{"{KEY}": ')
    child = world.serve()
    said = call(child, "pi_session_start", workspace="project")
    assert "pi_configuration_invalid" in said
    assert_silent(said + said_by(child))


def test_a_missing_workspace_is_refused_without_its_path(world: RealWorld) -> None:
    world.configure(workspaces={"project": f"/{PATH}"})
    child = world.serve()
    said = call(child, "pi_session_start", workspace="project")
    assert "workspace_unavailable" in said
    assert_silent(said + said_by(child))


@pytest.mark.parametrize("broken", ["{", f'{{"{KEY}": 1}}', f'{{"workspaces": {{"{PATH}": "{PATH}"}}}}'])
def test_a_refused_configuration_is_told_without_its_words(world: RealWorld, broken: str) -> None:
    world.configuration.write_text(broken)
    child = world.start_server()
    child.initialize()
    child.start_request("tools/call", {"name": "pi_capabilities_get"})
    assert child.wait() == 1
    assert child.rest() == []
    assert child.diagnostics[0]["event"] == "startup_failed"
    assert_silent(child.stderr.decode())
