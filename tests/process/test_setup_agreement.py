"""What setup says of one registration does not depend on the operation, the shell, or how a path is written."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.setup_worlds import Operator

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.setup_worlds import Driver

SCOPES = ["claude-code:project", "claude-code:user", "claude-code:local"]


@pytest.fixture
def operator(tmp_path: Path, driver: Driver) -> Operator:
    return Operator(tmp_path, driver)


def codes(answer: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in answer["findings"]]


@pytest.mark.parametrize("order", [SCOPES, SCOPES[::-1], SCOPES[:2], SCOPES[1::-1]], ids=str)
def test_each_scope_of_one_client_is_seen_made_and_removed_for_itself(operator: Operator, order: list[str]) -> None:
    operator.request = {"targets": order}
    every = len(order)

    assert codes(operator.setup("dry-run")) == ["absent"] * every
    assert codes(operator.setup("apply")) == ["applied"] * every
    assert codes(operator.setup("dry-run")) == ["equivalent"] * every
    assert codes(operator.setup("apply")) == ["already_equivalent"] * every
    operator.installation = "second"
    assert codes(operator.setup("dry-run")) == ["registration_fingerprint_mismatch"] * every
    assert codes(operator.setup("rebind")) == ["rebound"] * every
    assert len(operator.records()) == every
    assert codes(operator.setup("remove", targets=order[:1])) == ["removed"]
    assert codes(operator.setup("dry-run")) == ["absent", *["equivalent"] * (every - 1)]
    assert codes(operator.setup("remove")) == ["absent", *["removed"] * (every - 1)]
    assert operator.records() == []


def test_a_foreign_one_in_another_scope_is_named_and_left_alone(operator: Operator) -> None:
    foreign = {"type": "stdio", "command": "/opt/other", "args": [], "env": {}}
    document = json.loads(operator.claude_file.read_text())
    document["mcpServers"]["pi-session-mcp"] = foreign
    operator.claude_file.write_text(json.dumps(document))
    operator.request = {"targets": ["claude-code:project", "claude-code:local"]}

    told = operator.setup("apply")["findings"]

    assert [(one["code"], one.get("otherScope")) for one in told] == [("applied", "user"), ("applied", "user")]
    assert codes(operator.setup("remove")) == ["removed", "removed"]
    assert operator.registered() == foreign


def test_an_old_client_that_cannot_tell_the_project_from_the_user_is_not_believed(operator: Operator) -> None:
    assert operator.code("apply") == "applied"
    operator.stub.behave("claude", "get", fails_without_home=True)

    (finding,) = operator.setup("apply", targets=["claude-code:project"])["findings"]

    assert (finding["code"], finding["otherScope"]) == ("divergence_requires_replacement", "user")


def link_to(operator: Operator, installation: str) -> None:
    """A stable link to the command, as package managers make one on PATH."""
    operator.install("link")
    link = operator.root / "installations" / "link" / "bin" / "pi-session-mcp"
    link.unlink()
    link.symlink_to(operator.root / "installations" / installation / "bin" / "pi-session-mcp")


def test_a_link_to_this_program_is_this_program_in_every_shell(operator: Operator) -> None:
    link_to(operator, "first")
    operator.installation = "link"
    assert operator.code("apply") == "applied"
    operator.installation = "first"  # a shell whose PATH has no link
    for operation, code in (
        ("dry-run", "equivalent"),
        ("apply", "already_equivalent"),
        ("rebind", "already_equivalent"),
    ):
        assert operator.code(operation) == code
        assert operator.is_registered_for("link")
    operator.install("first", "new = True\n")
    assert operator.code("dry-run") == "release_binding_mismatch"
    assert operator.code("rebind") == "rebound"
    assert operator.is_registered_for("link")
    assert operator.code("remove") == "removed"


def test_a_link_that_leads_elsewhere_by_now_is_another_program(operator: Operator) -> None:
    link_to(operator, "first")
    operator.installation = "link"
    assert operator.code("apply") == "applied"
    operator.installation = "second"
    assert operator.code("dry-run") == "registration_fingerprint_mismatch"
    assert operator.code("rebind") == "rebound"
    assert operator.is_registered_for("second")


def test_a_link_that_others_can_turn_elsewhere_is_not_trusted(operator: Operator) -> None:
    link_to(operator, "first")
    operator.installation = "link"
    assert operator.code("apply") == "applied"
    operator.installation = "first"
    (operator.root / "installations" / "link" / "bin").chmod(0o777)
    assert operator.code("dry-run") == "registration_fingerprint_mismatch"


def test_the_configuration_may_be_named_by_another_way_to_its_directory_only(operator: Operator) -> None:
    assert operator.code("apply") == "applied"
    root = operator.root
    (root / "way").symlink_to(root)
    (root / "elsewhere").mkdir()
    (root / "elsewhere" / "config.json").symlink_to(root / "config.json")
    (root / "copy.json").write_text("{}")

    def told(path: str) -> str:
        return operator.code("dry-run", environ={**operator.environ, "PI_SESSION_MCP_CONFIG": f"{root}/{path}"})

    assert told("way/config.json") == "equivalent"
    # What it says of other files is relative to its own directory.
    assert told("elsewhere/config.json") == told("copy.json") == "registration_fingerprint_mismatch"


VARIABLES = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "copilot": "COPILOT_HOME"}
USUAL = {"claude-code": "", "codex": ".codex", "copilot": ".copilot"}


@pytest.mark.parametrize("client", VARIABLES)
def test_one_home_is_one_place_however_it_is_written(operator: Operator, client: str) -> None:
    home, variable = operator.root / "home", VARIABLES[client]
    operator.target = f"{client}:user"
    (home / "moved").mkdir()
    (home / USUAL[client]).mkdir(exist_ok=True)
    (operator.root / "way").symlink_to(home)
    ways = (f"{home}", f"{home}/", f"{home}/moved/..", f"{home}/./", f"{operator.root}/way", f"{operator.root}//way/")
    usual = [{**operator.environ, "HOME": way} for way in ways]
    usual += [{**operator.environ, variable: os.path.join(way, USUAL[client])} for way in ways]
    moved = [{**operator.environ, variable: os.path.join(way, "moved")} for way in ways]
    for environs in (usual, moved):
        assert operator.code("apply", environ=environs[0]) == "applied"
        for environ in environs:
            assert operator.code("rebind", environ=environ) == "already_equivalent"
    assert len(operator.records()) == 2
    assert operator.code("remove", environ=usual[-1]) == operator.code("remove", environ=moved[-1]) == "removed"
    assert operator.records() == []


@pytest.mark.parametrize("operation", ["dry-run", "apply", "verify", "rebind", "remove", "rollback"])
@pytest.mark.parametrize("kind", ["absent", "a file", "a link to nowhere"])
def test_a_home_of_codex_that_is_not_there_is_said_to_be_missing(operator: Operator, kind: str, operation: str) -> None:
    home = operator.root / "home" / "codex"
    if kind == "a file":
        home.touch()
    elif kind == "a link to nowhere":
        home.symlink_to("nowhere")
    operator.target = "codex:user"
    assert operator.code(operation, environ={**operator.environ, "CODEX_HOME": str(home)}) == "client_home_missing"
    assert [call["arguments"] for call in operator.stub.calls()] == [["mcp", "--help"]]
    assert not home.exists() or kind == "a file"


@pytest.mark.parametrize("client", ["claude-code", "copilot"])
def test_a_home_that_the_client_makes_itself_may_be_missing(operator: Operator, client: str) -> None:
    operator.target = f"{client}:user"
    environ = {**operator.environ, VARIABLES[client]: str(operator.root / "home" / "new")}
    told = [operator.code(operation, environ=environ) for operation in ("dry-run", "apply", "remove")]
    assert told == ["absent", "applied", "removed"]
