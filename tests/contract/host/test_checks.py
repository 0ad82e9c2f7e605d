"""The checks before a session is created, and Pi's own files behind them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.demo.model import write_agent_directory
from tests.support.proxy import RecordingProxy, port_of
from tests.support.raw_host import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.demo.model import ScriptedModel
    from tests.support.raw_host import RawHost, RawSession

STEPS = ("provider", "model", "check_auth", "get_auth", "availability")


def answers(session: RawSession) -> dict[str, bool | str]:
    """The answer to each check, or the code that it was refused with, each in a session of its own."""
    found: dict[str, bool | str] = {}
    for step in STEPS:
        one = session.host.session(session.cwd, provider=session.provider, model=session.model)
        one.load()
        try:
            found[step] = one.check(step)
        except Refused as refused:
            found[step] = refused.code
        one.ask("dispose")
    return found


def set_key(agent_directory: Path, key: str | None) -> None:
    models = json.loads((agent_directory / "models.json").read_text())
    provider = models["providers"]["scripted"]
    provider.pop("apiKey")
    if key is not None:
        provider["apiKey"] = key
    (agent_directory / "models.json").write_text(json.dumps(models))


def change_provider(agent_directory: Path, **members: object) -> None:
    models = json.loads((agent_directory / "models.json").read_text())
    models["providers"]["scripted"].update(members)
    (agent_directory / "models.json").write_text(json.dumps(models))


def set_credential(agent_directory: Path, credential: dict[str, object]) -> None:
    (agent_directory / "auth.json").write_text(json.dumps({"scripted": credential}))


def test_a_configured_model_passes_every_check(host: RawHost, workspace: Path) -> None:
    assert answers(host.session(workspace)) == dict.fromkeys(STEPS, True)


def test_the_checks_go_on_in_one_session(host: RawHost, workspace: Path) -> None:
    session = host.session(workspace)
    session.load()

    assert [session.check(step) for step in STEPS] == [True] * 5
    assert session.open()["selection"]["model"] == "scripted-1"


def test_an_unknown_provider_is_found_nowhere(host: RawHost, workspace: Path) -> None:
    assert answers(host.session(workspace, provider="nobody")) == dict.fromkeys(STEPS, False)


def test_an_unknown_model_of_a_known_provider(host: RawHost, workspace: Path) -> None:
    found = answers(host.session(workspace, model="scripted-2"))

    assert found == {"provider": True, "model": False, "check_auth": True, "get_auth": False, "availability": False}


@pytest.mark.parametrize("close", ["Scripted-1", "scripted", "scripted/scripted-1", "scripted-1 "])
def test_a_model_is_never_guessed(host: RawHost, workspace: Path, close: str) -> None:
    session = host.session(workspace, model=close)
    session.load()

    assert session.check("model") is False
    with pytest.raises(Refused, match="failed"):
        session.open()


def test_a_builtin_provider_without_credentials_is_known_but_not_available(host: RawHost, workspace: Path) -> None:
    found = answers(host.session(workspace, provider="anthropic", model="claude-opus-4-5"))

    assert found["provider"] is True
    assert (found["check_auth"], found["get_auth"], found["availability"]) == (False, False, False)


def test_a_key_from_an_empty_variable_is_there_and_cannot_be_used(
    host: RawHost, agent_directory: Path, workspace: Path
) -> None:
    set_key(agent_directory, "$SCRIPTED_KEY_THAT_IS_NOT_SET")

    found = answers(host.session(workspace))

    # The SDK throws where it should resolve the key; its message would name the variable.
    assert (found["check_auth"], found["get_auth"], found["availability"]) == ("failed", "failed", False)


@pytest.mark.parametrize("key", ["!exit 1", "!true", "!echo ' '", "$NOT_SET", "${NOT_SET}", "a-$NOT_SET"])
def test_a_key_that_comes_to_nothing_is_there_and_cannot_be_used_wherever_it_stands(
    host: RawHost, agent_directory: Path, workspace: Path, key: str
) -> None:
    set_key(agent_directory, key)
    configured = answers(host.session(workspace))
    set_key(agent_directory, None)
    set_credential(agent_directory, {"type": "api_key", "key": key})
    stored = answers(host.session(workspace))
    change_provider(agent_directory, apiKey="a key", headers={"x-key": key})
    (agent_directory / "auth.json").write_text("{}")
    header = answers(host.session(workspace))
    change_provider(agent_directory, headers={}, models=[{"id": "scripted-1", "headers": {"x-key": key}}])
    of_the_model = answers(host.session(workspace))

    # The first answer that is no yes is what a start is refused with.
    for found in (configured, stored, header, of_the_model):
        assert next(found[step] for step in STEPS if found[step] is not True) == "failed"


@pytest.mark.parametrize(
    "credential",
    [
        {"type": "api_key", "key": ""},
        {"type": "api_key"},
        {"type": "something new"},
        {"type": "oauth", "access": "a", "refresh": "r", "expires": 0},
    ],
    ids=json.dumps,
)
def test_a_stored_login_that_pi_can_do_nothing_with_is_there_and_cannot_be_used(
    host: RawHost, agent_directory: Path, workspace: Path, credential: dict[str, object]
) -> None:
    set_key(agent_directory, None)
    set_credential(agent_directory, credential)

    assert answers(host.session(workspace))["check_auth"] == "failed"


def test_an_expired_login_is_refreshed_through_the_proxy_and_is_unusable_when_that_fails(
    host: RawHost, agent_directory: Path, model: ScriptedModel, workspace: Path
) -> None:
    expired = {"type": "oauth", "access": "a", "refresh": "r", "expires": 0}
    (agent_directory / "auth.json").write_text(json.dumps({"anthropic": expired}))
    with RecordingProxy(port_of(model)) as proxy:
        (agent_directory / "settings.json").write_text(json.dumps({"httpProxy": proxy.address}))

        found = answers(host.session(workspace, provider="anthropic", model="claude-opus-4-5"))

    assert (found["check_auth"], found["get_auth"]) == (True, "failed")
    assert proxy.asked
    assert all(asked.endswith(":443") for asked in proxy.asked)


def test_a_key_from_a_command_counts(host: RawHost, agent_directory: Path, workspace: Path) -> None:
    set_key(agent_directory, "!echo a-key")

    assert answers(host.session(workspace)) == dict.fromkeys(STEPS, True)


def test_a_stored_credential_counts(host: RawHost, agent_directory: Path, workspace: Path) -> None:
    set_key(agent_directory, None)
    set_credential(agent_directory, {"type": "api_key", "key": "stored"})

    assert answers(host.session(workspace)) == dict.fromkeys(STEPS, True)


def test_questions_are_asked_in_their_order_until_the_first_no(host: RawHost, workspace: Path) -> None:
    known = host.session(workspace)
    known.load()
    unknown = host.session(workspace, model="other")
    unknown.load()

    assert known.ask("check", steps=STEPS, selection=known.selection) == {"found": True}
    assert [event["step"] for event in host.events if event["session"] == known.key] == list(STEPS)
    assert unknown.ask("check", steps=STEPS, selection=unknown.selection) == {"found": False}
    assert [event["step"] for event in host.events if event["session"] == unknown.key] == ["provider"]


def test_no_answer_holds_the_key(host: RawHost, agent_directory: Path, model: ScriptedModel, workspace: Path) -> None:
    write_agent_directory(agent_directory, model.base_url, api_key="canary-key")
    session = host.session(workspace)
    session.load()

    for step in STEPS:
        assert session.ask("check", steps=[step], selection=session.selection) == {"found": True}


def test_a_credential_that_is_added_counts_in_the_next_session(
    host: RawHost, agent_directory: Path, workspace: Path
) -> None:
    set_key(agent_directory, None)
    before = answers(host.session(workspace))
    set_credential(agent_directory, {"type": "api_key", "key": "stored later"})

    assert (before["check_auth"], answers(host.session(workspace))["check_auth"]) == (False, True)
    assert host.session(workspace).opened().say("hello") == "ok"


def test_a_model_that_is_added_counts_in_the_next_session(
    host: RawHost, agent_directory: Path, model: ScriptedModel, workspace: Path
) -> None:
    old = host.session(workspace).opened()
    write_agent_directory(agent_directory, model.base_url, models=("scripted-1", "scripted-2"))

    assert host.session(workspace, model="scripted-2").opened().say("hello") == "ok"
    assert model.requests[-1]["model"] == "scripted-2"
    assert old.say("hello") == "ok"


def test_a_credential_that_is_taken_away_is_missing_in_the_next_session(
    host: RawHost, agent_directory: Path, workspace: Path
) -> None:
    set_key(agent_directory, None)
    set_credential(agent_directory, {"type": "api_key", "key": "stored"})
    assert answers(host.session(workspace))["check_auth"] is True
    (agent_directory / "auth.json").write_text("{}")

    assert answers(host.session(workspace))["check_auth"] is False


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "",
        "[]",
        "{}",
        "null",
        '{"providers": {"scripted": {"baseUrl": 1}}}',
        '{"providers": {"scripted": {"baseUrl": "http://127.0.0.1:9/v1", "models": [{"id": "no-api"}]}}}',
    ],
)
def test_models_that_pi_cannot_use_are_refused(
    host: RawHost, agent_directory: Path, workspace: Path, content: str
) -> None:
    (agent_directory / "models.json").write_text(content)

    with pytest.raises(Refused, match="pi_configuration"):
        host.session(workspace).load()


def test_models_that_begin_with_a_byte_order_mark_are_fine(
    host: RawHost, agent_directory: Path, workspace: Path
) -> None:
    path = agent_directory / "models.json"
    path.write_text("\ufeff" + path.read_text())

    assert answers(host.session(workspace))["availability"] is True


@pytest.mark.parametrize("beyond", ["// a comment\n{}", "{},"])
def test_models_that_only_pi_takes_for_json_are_refused_as_doctor_says(
    host: RawHost, agent_directory: Path, workspace: Path, beyond: str
) -> None:
    path = agent_directory / "models.json"
    path.write_text(beyond.replace("{}", path.read_text()[:-1]) + "}")

    with pytest.raises(Refused, match="pi_configuration"):
        host.session(workspace).load()


@pytest.mark.parametrize("content", ["{", "[]", "null", '"text"', '{"scripted":'])
def test_credentials_that_are_no_object_are_refused(
    host: RawHost, agent_directory: Path, workspace: Path, content: str
) -> None:
    (agent_directory / "auth.json").write_text(content)

    with pytest.raises(Refused, match="pi_configuration"):
        host.session(workspace).load()


@pytest.mark.parametrize("content", ["", "{}", "\ufeff{}"])
def test_empty_credentials_are_fine(host: RawHost, agent_directory: Path, workspace: Path, content: str) -> None:
    (agent_directory / "auth.json").write_text(content)

    assert host.session(workspace).load()["extensions"] == 0


@pytest.mark.parametrize("name", ["models.json", "auth.json"])
@pytest.mark.parametrize("kind", ["a pipe", "a directory", "a link that leads nowhere"])
def test_files_of_pi_that_are_no_files_are_refused(
    host: RawHost, agent_directory: Path, workspace: Path, name: str, kind: str
) -> None:
    path = agent_directory / name
    path.unlink(missing_ok=True)
    match kind:
        case "a pipe":
            os.mkfifo(path)
        case "a directory":
            path.mkdir()
        case _:
            path.symlink_to(agent_directory / "on a volume that is not there")

    with pytest.raises(Refused, match="pi_configuration"):
        host.session(workspace).load()
    (path.rmdir if kind == "a directory" else path.unlink)()


@pytest.mark.skipif(os.getuid() == 0, reason="root can read everything")
@pytest.mark.parametrize("name", ["models.json", "auth.json"])
def test_files_of_pi_that_cannot_be_read_are_refused(
    host: RawHost, agent_directory: Path, workspace: Path, name: str
) -> None:
    (agent_directory / name).write_text("{}")
    (agent_directory / name).chmod(0)

    with pytest.raises(Refused, match="pi_configuration"):
        host.session(workspace).load()


def test_no_agent_directory_at_all_is_no_broken_one(host: RawHost, agent_directory: Path, workspace: Path) -> None:
    for path in agent_directory.iterdir():
        path.unlink()

    session = host.session(workspace)
    session.load()

    assert session.check("provider") is False
