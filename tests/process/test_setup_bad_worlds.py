"""Setup in worlds that are not as they should be: it refuses with a code, changes nothing, and tells nothing.

`-m matrix` runs the combinations of a damage and an operation that the plain run leaves out: it has each of both.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.setup_worlds import Operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tests.support.setup_templates import Templates
    from tests.support.setup_worlds import Driver

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
FOREIGN = {"type": "stdio", "command": "/opt/CANARY-command", "args": ["CANARY-arg"], "env": {"TOKEN": "CANARY-token"}}


@pytest.fixture
def operator(tmp_path: Path, driver: Driver) -> Operator:
    """Somebody who has registered nothing."""
    return Operator(tmp_path, driver)


@pytest.fixture
def owner(templates: Templates) -> Operator:
    """Somebody who has applied setup."""
    return templates.operator(applied=True)


def crossed(damages: Iterable[object], operations: tuple[str, ...]) -> Iterator[object]:
    """Each damage with each operation; the plain run goes through both in turn."""
    for number, damage in enumerate(damages):
        for place, operation in enumerate(operations):
            is_plain = number % len(operations) == place
            yield pytest.param(
                damage, operation, id=f"{damage}-{operation}", marks=() if is_plain else pytest.mark.matrix
            )


def changed(operator: Operator) -> bool:
    """Whether any client was told to change anything."""
    calls = [call["arguments"] for call in operator.stub.calls()]
    return any({"add", "remove"} & set(words[:2]) for words in calls)


ODD: list[dict[str, Any]] = [
    {"chatter": "A new version is available!\n"},
    {"trailer": "\nBye.\n"},
    {"language": "de"},
    {"colours": True},
    {"stdout": ""},
    {"kib": 33},
    {"kib": 1100},
    {"forever": True},
    {"exit": 3},
]


@pytest.mark.parametrize(("behaviour", "operation"), [*crossed(ODD, ("apply", "remove"))])
def test_an_answer_in_no_known_form_is_never_taken_for_ours(
    owner: Operator, behaviour: dict[str, Any], operation: str
) -> None:
    owner.stub.behave("claude", "get", **behaviour)
    told = len(owner.stub.calls())
    assert owner.code(operation, command_within_s=5) == "inspect_failed"
    assert not {"add", "remove"} & {call["arguments"][1] for call in owner.stub.calls()[told:]}
    assert owner.is_registered_for("first")


def test_a_client_that_says_it_worked_and_did_nothing_is_not_believed(operator: Operator) -> None:
    operator.stub.behave("claude", "add", writes_nothing=True)
    assert operator.code("apply") == "apply_failed_recovery_pending"
    operator.stub.behave("claude", "add")
    assert operator.code("apply") == "applied"
    operator.stub.behave("claude", "remove", writes_nothing=True)
    assert operator.code("remove") == "cleanup_failed"
    assert len(operator.records()) == 1


def test_a_client_that_registers_something_else_is_not_believed(operator: Operator) -> None:
    operator.stub.behave("claude", "add", writes_command="/bin/false")
    assert operator.code("apply") == "apply_failed_recovery_pending"
    operator.stub.behave("claude", "add")
    assert operator.code("apply") == "divergence_requires_replacement"
    assert operator.code("remove") == "ownership_diverged"
    assert operator.registered()["command"] == "/bin/false"


@pytest.mark.parametrize("operation", ["apply", "remove", "rebind", "rollback"])
def test_what_is_not_ours_is_never_changed(operator: Operator, operation: str) -> None:
    document = json.loads(operator.claude_file.read_text())
    document["mcpServers"]["pi-session-mcp"] = FOREIGN
    operator.claude_file.write_text(json.dumps(document))
    answer = operator.setup(operation)
    assert answer["exitCode"] == 1
    assert operator.registered() == FOREIGN
    assert not changed(operator)
    assert "CANARY" not in json.dumps(answer)
    assert not any(b"CANARY" in path.read_bytes() for path in operator.state.rglob("*") if path.is_file())


def test_our_own_registration_without_a_record_is_left_to_the_operator(owner: Operator) -> None:
    (owner.state / "ownership.json").unlink()
    assert owner.code("apply") == "already_equivalent"
    for operation in ("remove", "rollback", "rebind"):
        assert owner.code(operation) == "ownership_unavailable"
    assert owner.is_registered_for("first")


def test_a_registration_that_was_removed_by_hand_is_told_and_made_again(owner: Operator) -> None:
    owner.claude_file.write_text(json.dumps(owner.rest()))
    assert owner.code("dry-run") == "ownership_diverged"
    assert owner.code("rebind") == "ownership_diverged"
    assert owner.code("apply") == "applied"
    owner.claude_file.write_text(json.dumps(owner.rest()))
    assert owner.code("remove") == "removed"
    assert owner.records() == []


def test_a_registration_without_a_configuration_can_still_be_removed(owner: Operator) -> None:
    environ = {name: value for name, value in owner.environ.items() if name != "PI_SESSION_MCP_CONFIG"}
    assert owner.code("apply", environ=environ) == "config_required"
    assert owner.code("remove", environ=environ) == "removed"


def test_a_doctor_who_finds_an_error_keeps_setup_from_registering(operator: Operator) -> None:
    for operation in ("dry-run", "apply", "verify", "rebind"):
        assert operator.code(operation, clean=False) == "doctor_failed"
    assert operator.stub.calls() == []
    assert operator.code("remove", clean=False) == "absent"


def test_a_client_that_is_not_there_is_told(operator: Operator) -> None:
    (operator.root / "programs" / "claude").unlink()
    assert operator.code("apply") == "client_missing"


def test_a_corrupt_client_file_stays_as_it_is(operator: Operator) -> None:
    operator.claude_file.write_text('{"mcpServers": ')
    assert operator.code("apply") == "inspect_failed"
    assert operator.claude_file.read_text() == '{"mcpServers": '


@pytest.mark.parametrize("home", [None, "", "relative/home"])
def test_without_a_home_no_client_is_run(operator: Operator, home: str | None) -> None:
    environ = {name: value for name, value in operator.environ.items() if name != "HOME"}
    if home is not None:
        environ["HOME"] = home
    for operation in ("dry-run", "apply", "remove"):
        assert operator.code(operation, environ=environ) == "home_unavailable"
    assert operator.stub.calls() == []


def test_an_empty_or_relative_variable_for_the_state_counts_as_none(operator: Operator) -> None:
    assert operator.code("apply", environ={**operator.environ, "XDG_STATE_HOME": "relative"}) == "applied"
    assert len(operator.records()) == 1
    assert operator.code("apply", environ={**operator.environ, "XDG_STATE_HOME": ""}) == "already_equivalent"


def test_a_client_home_that_is_relative_is_refused(operator: Operator) -> None:
    assert operator.code("apply", environ={**operator.environ, "CLAUDE_CONFIG_DIR": "x"}) == "home_unavailable"
    assert operator.stub.calls() == []


def link(path: Path) -> None:
    target = path.with_name("elsewhere")
    target.mkdir(mode=0o700)
    path.symlink_to(target)


UNSAFE: dict[str, Callable[[Path], None]] = {
    "world-writable": lambda path: (path.mkdir(), path.chmod(0o777))[0],  # type: ignore[func-returns-value]
    "group-writable": lambda path: (path.mkdir(), path.chmod(0o770))[0],  # type: ignore[func-returns-value]
    "a link": link,
    "a link to nowhere": lambda path: path.symlink_to(path.with_name("nowhere")),
    "a file": lambda path: (path.write_text("") and None) or None,
}


@pytest.mark.parametrize("kind", UNSAFE)
@pytest.mark.parametrize("own", ["pi-session-mcp", "pi-session-mcp/setup"])
def test_a_state_directory_that_is_not_ours_alone_is_refused(operator: Operator, kind: str, own: str) -> None:
    path = operator.root / "home" / ".local" / "state" / own
    path.parent.mkdir(parents=True, mode=0o700)
    UNSAFE[kind](path)
    before = sorted(map(str, operator.root.joinpath("home").rglob("*")))
    for operation in ("dry-run", "apply", "remove"):
        assert operator.code(operation) == "state_directory_unsafe"
    assert sorted(map(str, operator.root.joinpath("home").rglob("*"))) == before
    assert operator.stub.calls() == []


def as_directory(mark: Path) -> None:
    for below in ("objects", "refs"):
        (mark / below).mkdir(parents=True)
    (mark / "HEAD").write_text("ref: refs/heads/main\n")


def as_file(mark: Path) -> None:
    mark.write_text("gitdir: .dotfiles\n")


@pytest.mark.parametrize("make", [as_directory, as_file])
@pytest.mark.parametrize("target", ["claude-code:user", "codex:user", "copilot:user"])
def test_a_home_that_is_a_project_is_no_obstacle(operator: Operator, target: str, make: Callable[[Path], None]) -> None:
    home, operator.target = operator.root / "home", target
    make(home / ".git")
    (home / ".local").mkdir()
    (home / ".local" / ".codex").mkdir()
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": {"pi-session-mcp": FOREIGN}}))
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    operator.request = {"environ": {**operator.environ, "GIT_DIR": str(home / ".git"), "GIT_WORK_TREE": str(home)}}

    told = [operator.code(each) for each in ("dry-run", "apply", "dry-run", "apply", "rebind", "remove", "dry-run")]

    assert told == ["absent", "applied", "equivalent", "already_equivalent", "already_equivalent", "removed", "absent"]
    assert operator.records() == []


def test_what_lies_in_the_directory_to_look_from_is_named(owner: Operator) -> None:
    (owner.state / "inspect" / "x").touch()
    (finding,) = owner.setup("dry-run")["findings"]
    assert (finding["code"], finding["inTheWay"]) == ("state_directory_unsafe", "inspect")


def test_a_dry_run_needs_no_directory_to_keep_anything_in(operator: Operator) -> None:
    (operator.root / "home" / ".local").touch()  # so nothing can be made below it, whoever we are
    before = sorted(operator.root.joinpath("home").rglob("*"))
    assert operator.code("dry-run") == "absent"
    assert [path for path in operator.root.joinpath("home").rglob("*") if ".stub" not in path.parts] == [
        path for path in before if ".stub" not in path.parts
    ]
    for operation in ("apply", "verify", "remove", "rollback", "rebind"):
        assert operator.code(operation) == "state_directory_unavailable"
    assert not changed(operator)


@needs_root
def test_in_a_home_of_somebody_else_nothing_is_made(operator: Operator) -> None:
    home = operator.root / "home"
    os.chown(home, 12345, 12345)
    before = sorted(map(str, home.rglob("*")))
    assert operator.code("apply") == "state_directory_unsafe"
    assert sorted(map(str, home.rglob("*"))) == before
    assert operator.stub.calls() == []


@pytest.mark.parametrize("umask", [0o000, pytest.param(0o077, marks=pytest.mark.matrix), 0o777])
def test_what_setup_keeps_is_private_whatever_the_umask(operator: Operator, umask: int) -> None:
    assert operator.code("apply", umask=umask) in {"applied", "apply_failed_recovery_pending", "client_unsupported"}
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (operator.state, *operator.state.iterdir())}
    assert modes.pop("setup") == modes.pop("inspect") == 0o700
    assert set(modes.values()) <= {0o600}


def test_where_locks_cannot_be_trusted_only_a_dry_run_works(operator: Operator) -> None:
    for operation in ("apply", "verify", "remove", "rollback", "rebind"):
        assert operator.code(operation, untrusted_locks=True) == "filesystem_unsupported"
    assert operator.stub.calls() == []
    assert operator.code("dry-run", untrusted_locks=True) == "absent"
    assert "fence.wanted" not in operator.steps()


def test_a_disk_that_is_full_changes_nothing(owner: Operator) -> None:
    book = json.loads((owner.state / "ownership.json").read_text())
    others = [{**book["records"][0], "place": f"{number:064x}"} for number in range(40)]
    (owner.state / "ownership.json").write_text(json.dumps({**book, "records": others}))
    owner.claude_file.write_text(json.dumps(owner.rest()))
    assert owner.code("apply", file_bytes=8192) == "ownership_unavailable"
    assert owner.registered() is None
    assert owner.records() == others
    assert not [path for path in owner.state.iterdir() if path.name.startswith(".")]


DAMAGES = (
    b"",
    b"{",
    b'{"schemaVersion": 1, "records": [], "more": 1}',
    b"[]",
    b'{"schemaVersion": true, "records": []}',
    b'{"schemaVersion": 1.0, "records": []}',
    b'{"records": []}',
    b"\xff",
    b'{"records": [], "records": []}',
)


@pytest.mark.parametrize(
    ("damage", "operation"), [*crossed(DAMAGES, ("apply", "remove", "rebind", "rollback", "dry-run"))]
)
def test_damaged_records_are_refused_and_left(owner: Operator, damage: bytes, operation: str) -> None:
    file = owner.state / "ownership.json"
    file.write_bytes(damage)
    told = len(owner.stub.calls())
    assert owner.code(operation) == "ownership_unavailable"
    assert file.read_bytes() == damage
    assert not {"add", "remove"} & {call["arguments"][1] for call in owner.stub.calls()[told:]}


NAMES = ("with space", "qu'o\"te", "ünïcödé", "$HOME", "a;b")


@pytest.mark.parametrize("name", [" ".join(NAMES), *(pytest.param(name, marks=pytest.mark.matrix) for name in NAMES)])
def test_paths_of_every_kind_are_registered_exactly(operator: Operator, name: str) -> None:
    operator.install(name)
    operator.installation = name
    assert operator.code("apply") == "applied"
    assert operator.is_registered_for(name)
    assert operator.code("remove") == "removed"


@pytest.mark.parametrize("name", ["new\nline", "tab\t", " outer", "${HOME}", "back\x1b[31m"])
def test_a_path_that_clients_cannot_show_exactly_is_refused(operator: Operator, name: str) -> None:
    environ = {**operator.environ, "PI_SESSION_MCP_CONFIG": f"{operator.root}/{name} "}
    assert operator.code("apply", environ=environ) == "config_required"
    assert operator.stub.calls() == []


def test_the_configuration_that_was_named_is_registered_and_not_another_behind_a_link(operator: Operator) -> None:
    (operator.root / "elsewhere" / "below").mkdir(parents=True)
    (operator.root / "elsewhere" / "config.json").write_text("{}")
    (operator.root / "link").symlink_to(operator.root / "elsewhere" / "below")
    named = f"{operator.root}/link/../config.json"
    assert operator.code("apply", environ={**operator.environ, "PI_SESSION_MCP_CONFIG": named}) == "applied"
    assert operator.registered()["env"] == {"PI_SESSION_MCP_CONFIG": named}


@pytest.mark.parametrize(
    "descriptors", [7, 20, *(pytest.param(number, marks=pytest.mark.matrix) for number in (9, 11, 12))]
)
def test_without_descriptors_it_fails_with_a_code_and_the_next_apply_does_it(
    operator: Operator, descriptors: int
) -> None:
    told = operator.setup("apply", descriptors=descriptors)
    assert told["exitCode"] == 0 or told["findings"][0]["status"] in {"failed", "unsupported"}
    assert operator.code("apply") in {"applied", "pending_recovered", "already_equivalent"}
    assert operator.code("remove", descriptors=descriptors) != "removed" or operator.registered() is None
    assert operator.code("remove") in {"removed", "absent"}
    assert operator.records() == []


def test_a_link_among_the_files_of_the_installation_is_refused(operator: Operator) -> None:
    (operator.root / "installations" / "first" / "package" / "link").symlink_to("code.py")
    assert operator.code("apply") == "release_unavailable"


def test_an_upgrade_in_place_is_noticed_and_rebound(owner: Operator) -> None:
    owner.install("first", "new = True\n")
    assert owner.code("dry-run") == "release_binding_mismatch"
    assert owner.code("apply") == "release_binding_mismatch"
    told = len(owner.stub.calls())
    assert owner.code("rebind") == "rebound"
    assert not {"add", "remove"} & {call["arguments"][1] for call in owner.stub.calls()[told:]}
    assert owner.code("rebind") == "already_equivalent"
    owner.install("first", "newer = True\n")
    assert owner.code("remove") == "removed"


def test_a_moved_installation_is_noticed_and_rebound(owner: Operator) -> None:
    owner.installation = "second"
    assert owner.code("dry-run") == "registration_fingerprint_mismatch"
    assert owner.code("apply") == "registration_fingerprint_mismatch"
    assert owner.code("rebind") == "rebound"
    assert owner.is_registered_for("second")
    owner.installation = "first"
    assert owner.code("remove") == "removed"
