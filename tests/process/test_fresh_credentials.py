"""Pi's files are read for each session: what was added to them counts for the next one, without a restart."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.demo.model import Say, ScriptedModel, write_agent_directory
from tests.support.environment import ensure_installed
from tests.support.real import PROFILE, RealWorld, run_turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.process.client import Child

LATER = "scripted-2"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWorld]:
    with RealWorld(tmp_path_factory.mktemp("credentials") / "world", ensure_installed()) as made:
        reader = {"default": True, "permissionProfile": "read-only", **PROFILE}
        later = {"permissionProfile": "read-only", **PROFILE, "model": LATER}
        made.configure(executionProfiles={"reader": reader, "later": later})
        yield made


@pytest.fixture(scope="module")
def child(world: RealWorld) -> Child:
    """One server, which is never restarted."""
    return world.serve()


@pytest.fixture(autouse=True)
def usual_files(world: RealWorld) -> None:
    """Each test begins with files that work."""
    (world.agent_directory / "auth.json").unlink(missing_ok=True)
    write_agent_directory(world.agent_directory, world.model.base_url)


def outcome(child: Child, profile: str = "reader") -> str:
    """How a session of that profile fares: the code that its start was refused with, or how its turn ended."""
    started = child.call("pi_session_start", workspace="project", executionProfile=profile)
    if not started["ok"]:
        return str(started["error"]["code"])
    session = started["session"]["id"]
    state = run_turn(child, session, "hello")["state"]
    assert child.call("pi_session_close", sessionId=session)["ok"]
    return str(state)


def models(world: RealWorld) -> Path:
    return world.agent_directory / "models.json"


def change_provider(world: RealWorld, **members: Any) -> None:
    """Set members of the provider in `models.json`; `None` takes one away."""
    document = json.loads(models(world).read_text())
    provider = document["providers"]["scripted"]
    provider.update(members)
    document["providers"]["scripted"] = {name: value for name, value in provider.items() if value is not None}
    models(world).write_text(json.dumps(document))


def test_a_key_that_is_added_counts_for_the_next_session(world: RealWorld, child: Child) -> None:
    change_provider(world, apiKey=None)
    assert outcome(child) == "local_authentication_missing"

    (world.agent_directory / "auth.json").write_text(json.dumps({"scripted": {"type": "api_key", "key": "fresh"}}))
    assert outcome(child) == "completed"

    (world.agent_directory / "auth.json").write_text("{}")
    assert outcome(child) == "local_authentication_missing"


def test_a_model_that_is_added_counts_for_the_next_session(world: RealWorld, child: Child) -> None:
    assert outcome(child, "later") == "unknown_model"

    write_agent_directory(world.agent_directory, world.model.base_url, models=("scripted-1", LATER))
    assert outcome(child, "later") == "completed"
    assert world.model.requests[-1]["model"] == LATER


def test_a_provider_that_is_added_counts_for_the_next_session(world: RealWorld, child: Child) -> None:
    models(world).unlink()
    assert outcome(child) == "unknown_provider"

    write_agent_directory(world.agent_directory, world.model.base_url)
    assert outcome(child) == "completed"


@pytest.mark.parametrize("name", ["models.json", "auth.json"])
def test_a_broken_file_stops_new_sessions_and_counts_again_once_repaired(
    world: RealWorld, child: Child, name: str
) -> None:
    session = world.start_session(child)
    path = world.agent_directory / name
    sound = path.read_text() if path.exists() else "{}"
    path.write_text("no JSON")

    assert outcome(child) == "pi_configuration_invalid"
    path.write_text(sound)
    assert outcome(child) == "completed"
    assert run_turn(child, session, "hello")["state"] == "completed"
    assert child.call("pi_session_close", sessionId=session)["ok"]


def test_a_prompt_that_pi_refuses_for_want_of_credentials_leaves_the_session_as_it_was(
    world: RealWorld, child: Child
) -> None:
    session = world.start_session(child)
    before = child.call("pi_session_get", sessionId=session)["session"]
    (world.agent_directory / "auth.json").write_text("no JSON")  # Pi reads it for each prompt

    refused = child.call("pi_session_prompt", sessionId=session, prompt="hello", waitMs=50_000)
    assert refused["error"]["code"] == "prompt_rejected"
    assert child.call("pi_session_get", sessionId=session)["session"] == before
    assert child.call("pi_session_close", sessionId=session)["ok"]


def test_an_open_session_keeps_its_endpoint_while_the_next_one_gets_the_new(world: RealWorld, child: Child) -> None:
    with ScriptedModel() as moved:
        world.model.on("where", Say("at the old place"))
        moved.on("where", Say("at the new place"))
        old = world.start_session(child)
        change_provider(world, baseUrl=moved.base_url)
        new = world.start_session(child)

        assert run_turn(child, old, "where")["assistantText"] == "at the old place"
        assert run_turn(child, new, "where")["assistantText"] == "at the new place"
        for session in (old, new):
            assert child.call("pi_session_close", sessionId=session)["ok"]


@pytest.mark.parametrize(
    ("provider", "stored", "code"),
    [
        ({"apiKey": None}, {}, "local_authentication_missing"),
        ({"apiKey": None, "headers": {"x-key": "!exit 1"}}, {}, "local_authentication_missing"),
        ({"apiKey": None}, {"another": {"type": "api_key", "key": "!exit 1"}}, "local_authentication_missing"),
        ({"apiKey": "!exit 1"}, {}, "local_authentication_unavailable"),
        ({"apiKey": "$NOT_SET"}, {}, "local_authentication_unavailable"),
        ({"headers": {"x-key": "!exit 1"}}, {}, "local_authentication_unavailable"),
        ({"apiKey": None}, {"scripted": {"type": "api_key", "key": "!exit 1"}}, "local_authentication_unavailable"),
        ({}, {"scripted": {"type": "api_key", "key": ""}}, "local_authentication_unavailable"),
    ],
    ids=str,
)
def test_a_credential_that_fails_is_told_from_one_that_is_not_there(
    world: RealWorld, child: Child, provider: dict[str, Any], stored: dict[str, Any], code: str
) -> None:
    change_provider(world, **provider)
    (world.agent_directory / "auth.json").write_text(json.dumps(stored))

    assert outcome(child) == code


def test_a_key_command_that_has_failed_is_asked_again_for_the_next_session(
    world: RealWorld, child: Child, tmp_path: Path
) -> None:
    change_provider(world, apiKey=None)
    key = tmp_path / "key"
    command = {"scripted": {"type": "api_key", "key": f"!cat '{key}'"}}
    (world.agent_directory / "auth.json").write_text(json.dumps(command))
    assert outcome(child) == "local_authentication_unavailable"

    key.write_text("from the store that is open now")
    assert outcome(child) == "completed"


@pytest.mark.matrix
def test_a_key_command_that_hangs_is_a_credential_that_cannot_be_used(world: RealWorld, child: Child) -> None:
    change_provider(world, apiKey="!sleep 60")

    assert outcome(child) == "local_authentication_unavailable"
