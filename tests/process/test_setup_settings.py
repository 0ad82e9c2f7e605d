"""What the owner of a registration has set for it by hand is theirs, and the registration is still ours."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.setup_worlds import Operator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.setup_worlds import Driver

TARGETS = ("claude-code:user", "codex:user", "copilot:user")
CODEX = {
    "startup_timeout_sec": 60,
    "tool_timeout_sec": 600.5,
    "required": True,
    "enabled_tools": ["pi_turn_get"],
    "default_tools_approval_mode": "approve",
}
SET: dict[str, dict[str, Any]] = {
    "claude-code:user": {"timeout": 60000},
    "codex:user": CODEX,
    "copilot:user": {"timeout": 60000, "tools": ["pi_turn_get", "pi_session_start"]},
}
COMMENT = "# by hand: this model is slow\n"


@pytest.fixture(params=TARGETS)
def owner(request: pytest.FixtureRequest, tmp_path: Path, driver: Driver) -> Operator:
    """Somebody who has applied setup, and then set something."""
    operator = Operator(tmp_path, driver, target=request.param)
    assert operator.code("apply") == "applied"
    change(operator, SET[request.param])
    return operator


def file_of(operator: Operator) -> Path:
    names = {"claude": ".claude.json", "codex": ".codex/config.toml", "copilot": ".copilot/mcp-config.json"}
    return operator.root / "home" / names[operator.target.split(":")[0].removesuffix("-code")]


def change(operator: Operator, fields: dict[str, Any]) -> None:
    """As somebody does it with an editor."""
    file = file_of(operator)
    if file.suffix == ".toml":
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
        file.write_text(file.read_text().replace("args = ", f"{COMMENT}{lines}args = "))
        return
    document = json.loads(file.read_text())
    document["mcpServers"]["pi-session-mcp"] |= fields
    file.write_text(json.dumps(document))


def entry(operator: Operator) -> dict[str, Any]:
    file = file_of(operator)
    document = tomllib.loads(file.read_text()) if file.suffix == ".toml" else json.loads(file.read_text())
    found: dict[str, Any] = document["mcp_servers" if file.suffix == ".toml" else "mcpServers"]["pi-session-mcp"]
    return found


def is_kept(operator: Operator) -> bool:
    expected = SET[operator.target]
    text = file_of(operator).read_text()
    return {key: entry(operator).get(key) for key in expected} == expected and (
        operator.target != "codex:user" or COMMENT in text
    )


def test_the_registration_is_still_ours_for_every_operation(owner: Operator) -> None:
    assert owner.code("dry-run") == "equivalent"
    assert owner.code("apply") == "already_equivalent"
    owner.install("first", "new = True\n")
    assert owner.code("rebind") == "rebound"
    assert is_kept(owner)
    assert owner.code("remove") == "removed"
    assert owner.records() == []
    assert owner.code("dry-run") == "absent"


def test_a_rebind_to_another_path_keeps_what_was_set(owner: Operator) -> None:
    owner.installation = "second"
    assert owner.code("dry-run") == "registration_fingerprint_mismatch"
    assert owner.code("rebind") == "rebound"
    assert entry(owner)["command"] == str(owner.root / "installations" / "second" / "bin" / "pi-session-mcp")
    assert is_kept(owner)
    assert owner.code("rebind") == "already_equivalent"
    assert owner.code("remove") == "removed"


def test_what_cannot_be_kept_is_not_lost(owner: Operator) -> None:
    secret = {"HTTPS_PROXY": "http://CANARY@proxy"}  # clients take values as arguments, which everybody can see
    if owner.target == "codex:user":
        owner.stub.behave("codex", "app-server", writes_nothing=True, stdout="", exit=2)
    else:
        change(owner, {"env": {**entry(owner)["env"], **secret}})
    assert owner.code("dry-run") == "equivalent"
    before, records = file_of(owner).read_text(), owner.records()
    owner.installation = "second"

    answer = owner.setup("rebind")

    (finding,) = answer["findings"]
    assert (finding["status"], finding["code"], answer["exitCode"]) == ("divergent", "settings_would_be_lost", 1)
    assert (file_of(owner).read_text(), owner.records()) == (before, records)
    assert owner.code("rebind") == "settings_would_be_lost"
    assert owner.code("remove") == "removed"
    assert not any("CANARY" in json.dumps(call) for call in owner.stub.calls())


def test_a_variable_that_could_change_what_is_started_makes_it_anothers(owner: Operator) -> None:
    if owner.target == "codex:user":
        change(owner, {"env_vars": ["LD_PRELOAD"]})
    else:
        change(owner, {"env": {**entry(owner)["env"], "NODE_OPTIONS": "--require=/x.js"}})
    before = file_of(owner).read_text()
    assert owner.code("dry-run") == "divergent"
    for operation in ("rebind", "remove", "rollback"):
        assert owner.code(operation) == "ownership_diverged"
    assert file_of(owner).read_text() == before


@pytest.fixture
def codex(tmp_path: Path, driver: Driver) -> Operator:
    operator = Operator(tmp_path, driver, target="codex:user")
    assert operator.code("apply") == "applied"
    return operator


def test_one_that_was_disabled_is_left_so_and_named(codex: Operator) -> None:
    change(codex, {"enabled": False})
    for operation in ("dry-run", "apply", "verify"):
        assert codex.code(operation) == "registration_disabled"
    codex.install("first", "new = True\n")
    assert codex.code("dry-run") == "release_binding_mismatch"
    assert codex.code("rebind") == "rebound"
    codex.installation = "second"
    assert codex.code("rebind") == "rebound"
    assert entry(codex)["enabled"] is False
    assert codex.code("dry-run") == "registration_disabled"
    assert codex.code("remove") == "removed"


def test_without_anything_set_a_client_that_cannot_change_it_adds_it_anew(codex: Operator) -> None:
    codex.stub.behave("codex", "app-server", writes_nothing=True, stdout="", exit=2)
    codex.installation = "second"
    assert codex.code("rebind") == "rebound"
    assert entry(codex)["command"] == str(codex.root / "installations" / "second" / "bin" / "pi-session-mcp")


def test_a_change_that_is_only_said_to_be_made_is_not_believed(codex: Operator) -> None:
    change(codex, CODEX)
    before = file_of(codex).read_text()
    codex.stub.behave("codex", "app-server", writes_nothing=True)
    codex.installation = "second"
    assert codex.code("rebind") == "settings_would_be_lost"
    assert file_of(codex).read_text() == before


@pytest.mark.parametrize("victim", ["command", "guardian", "both", "client", "SIGINT"])
@pytest.mark.parametrize("held", ["before", "after"])
def test_a_change_that_is_killed_is_finished_by_the_next_rebind(codex: Operator, victim: str, held: str) -> None:
    change(codex, CODEX)
    codex.installation = "second"
    codex.stub.behave("codex", "app-server", **{f"hold_{held}": True})
    mark = codex.root / "home" / ".stub" / f"held.{held}"
    codex.setup("rebind", step="change.running", victim=victim, held=str(mark))
    codex.until_fence_falls()
    codex.stub.behave("codex", "app-server")

    assert codex.code("rebind") in {"rebound", "already_equivalent"}
    assert is_kept(codex)
    assert codex.code("dry-run") == "equivalent"
    assert codex.code("remove") == "removed"
