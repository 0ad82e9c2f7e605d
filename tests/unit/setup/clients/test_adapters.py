"""The adapters with stub clients: what they run, where, and what they make of it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pytest

from pi_session_mcp.setup.clients.base import (
    AskedFrom,
    ClientCommand,
    ClientOutput,
    CommandFailed,
    CommandFailure,
    Discovery,
    Inspection,
    Seen,
)
from pi_session_mcp.setup.clients.claude_code import ClaudeCode
from pi_session_mcp.setup.clients.known import client_named
from pi_session_mcp.setup.registration import Registration, registration_of
from pi_session_mcp.setup.targets import ALL_TARGETS, SCOPES, Target
from tests.support.plain_runner import PlainRunner
from tests.support.stub_client import ClientName, StubHome, install_stub_clients
from tests.unit.setup.clients.recordings import recorded

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.setup.clients.base import Client

pytestmark = pytest.mark.anyio

INTENT: Final = registration_of("/opt/My Dir: x/pi-session-mcp", "/home/o/it's ünïque.json")
OTHER: Final = registration_of("/opt/other", "/home/o/other.json")
PROGRAMS: Final[dict[str, ClientName]] = {"claude-code": "claude", "codex": "codex", "copilot": "copilot"}
TARGETS: Final = pytest.mark.parametrize("target", ALL_TARGETS, ids=lambda target: target.short)
ONE_OF_EACH_CLIENT: Final = pytest.mark.parametrize(
    "target",
    [
        pytest.param(target, marks=() if target.scope == "user" else pytest.mark.matrix, id=target.short)
        for target in ALL_TARGETS
    ],
)
"""For what a client's answer alone decides; `-m matrix` tries it in the other scopes as well."""


@dataclass(frozen=True, slots=True)
class World:
    """A home with stub clients, a project, and a neutral directory."""

    stubs: StubHome
    project: Path
    neutral: Path
    run: PlainRunner = field(default_factory=PlainRunner)

    def client(self, target: Target, directory: Path | None = None, /, **environ: str) -> Client:
        asked_from = AskedFrom({**self.stubs.environ, **environ}, directory or self.project, self.neutral)
        return client_named(target.client, asked_from)

    def client_with(self, target: Target, variable: str, value: str) -> Client:
        environ = {**self.stubs.environ, variable: value}
        return client_named(target.client, AskedFrom(environ, self.project, self.neutral))


@pytest.fixture
def world(tmp_path: Path) -> World:
    project, neutral = tmp_path / "project", tmp_path / "state" / "neutral"
    project.mkdir()
    neutral.parent.mkdir()
    neutral.mkdir(mode=0o700)
    return World(install_stub_clients(tmp_path / "home", tmp_path / "bin"), project, neutral)


@TARGETS
async def test_what_is_added_is_seen_and_what_is_removed_is_gone(world: World, target: Target) -> None:
    client = world.client(target)

    assert await client.discover(world.run) is Discovery.USABLE
    assert await client.inspect(world.run, target, INTENT) == Inspection(Seen.ABSENT)
    assert await client.add(world.run, target, INTENT)
    assert await client.inspect(world.run, target, INTENT) == Inspection(Seen.EQUIVALENT, INTENT)
    assert await client.inspect(world.run, target, OTHER) == Inspection(Seen.DIVERGENT, INTENT)
    assert await client.remove(world.run, target)
    assert await client.inspect(world.run, target, INTENT) == Inspection(Seen.ABSENT)


@TARGETS
async def test_only_adding_and_removing_change_anything(world: World, target: Target) -> None:
    client = world.client(target)

    await client.discover(world.run)
    await client.inspect(world.run, target, INTENT)
    await client.hidden_by(world.run, target)
    assert not any(command.mutates for command in world.run.commands)

    before = len(world.run.commands)
    await client.add(world.run, target, INTENT)
    await client.remove(world.run, target)
    assert all(command.mutates for command in world.run.commands[before:])


@TARGETS
async def test_a_user_scope_is_spoken_to_from_the_neutral_directory_alone(world: World, target: Target) -> None:
    client = world.client(target)

    await client.discover(world.run)
    before = len(world.run.commands)
    await client.inspect(world.run, target, INTENT)
    await client.add(world.run, target, INTENT)
    await client.remove(world.run, target)

    expected = world.neutral if target.scope == "user" else world.project
    assert world.run.commands[0].directory == world.neutral
    assert {command.directory for command in world.run.commands[before:]} == {expected}


@TARGETS
async def test_the_client_gets_the_operators_environment_without_colours(world: World, target: Target) -> None:
    client = world.client(target, MCP_TIMEOUT="5000", EXTRA="1")

    await client.inspect(world.run, target, INTENT)
    await client.add(world.run, target, INTENT)

    operators = {**world.stubs.environ, "EXTRA": "1", "NO_COLOR": "1"}
    inspecting = "1" if target.client == "claude-code" else "5000"
    assert world.run.commands[0].environment == {**operators, "MCP_TIMEOUT": inspecting}
    assert world.run.commands[1].environment == {**operators, "MCP_TIMEOUT": "5000"}


async def test_the_words_of_each_call_are_those_that_every_recorded_version_takes(world: World) -> None:
    intent = Registration("/p", ("serve",), MappingProxyType({"PI_SESSION_MCP_CONFIG": "/c"}))
    for target in ALL_TARGETS:
        await world.client(target).add(world.run, target, intent)
        await world.client(target).remove(world.run, target)

    name, variable = "pi-session-mcp", "PI_SESSION_MCP_CONFIG=/c"
    expected: list[tuple[str, ...]] = []
    for scope in SCOPES["claude-code"]:
        expected.append(("mcp", "add", "--scope", scope, "-e", variable, "--", name, "/p", "serve"))
        expected.append(("mcp", "remove", "--scope", scope, "--", name))
    expected += [("mcp", "add", name, "--env", variable, "--", "/p", "serve"), ("mcp", "remove", name)] * 2
    assert [command.argv[1:] for command in world.run.commands] == expected


@TARGETS
async def test_paths_that_could_be_taken_for_others_are_never_given_to_a_client(world: World, target: Target) -> None:
    client = world.client(target)
    for path in ("/a\n", "/a b ", "/\ta", "/a\x7fb", "/${HOME}/b"):
        assert not await client.add(world.run, target, registration_of(path, "/c.json"))
        assert not await client.add(world.run, target, registration_of("/p", path))

    assert world.run.commands == []


@TARGETS
async def test_a_client_that_says_no_or_lies_is_found_out_by_the_next_look(world: World, target: Target) -> None:
    client, stub = world.client(target), PROGRAMS[target.client]

    world.stubs.behave(stub, "add", exit=1, writes_nothing=True)
    assert not await client.add(world.run, target, INTENT)
    world.stubs.behave(stub, "add", writes_nothing=True)
    assert await client.add(world.run, target, INTENT)
    assert (await client.inspect(world.run, target, INTENT)).seen is Seen.ABSENT

    world.stubs.behave(stub, "add", writes_command="/opt/another")
    await client.add(world.run, target, INTENT)
    assert (await client.inspect(world.run, target, INTENT)).seen is Seen.DIVERGENT


ODD: Final[list[dict[str, object]]] = [
    {"chatter": "Update available\n"},
    {"trailer": "bye\n"},
    {"colours": True},
    {"kib": 33},
    {"stdout": ""},
    {"exit": 1},
    {"exit": 3},
]


@ONE_OF_EACH_CLIENT
async def test_an_odd_answer_is_unsupported(world: World, target: Target) -> None:
    client = world.client(target)
    await client.add(world.run, target, INTENT)
    seen = []
    for behaviour in ODD:
        world.stubs.behave(PROGRAMS[target.client], "get", **behaviour)
        seen.append((behaviour, await client.inspect(world.run, target, INTENT)))

    assert seen == [(behaviour, Inspection(Seen.UNSUPPORTED)) for behaviour in ODD]


@TARGETS
async def test_a_program_that_is_not_there_is_missing(world: World, target: Target) -> None:
    (world.stubs.programs / PROGRAMS[target.client]).unlink()
    client = world.client(target)

    assert await client.discover(world.run) is Discovery.MISSING
    with pytest.raises(CommandFailed) as failed:
        await client.inspect(world.run, target, INTENT)
    assert failed.value.kind is CommandFailure.MISSING


POOR: Final[list[dict[str, object]]] = [{"exit": 1}, {"stdout": ""}, {"stdout": "  get  \n  add \n"}, {"kib": 33}]


@ONE_OF_EACH_CLIENT
async def test_a_program_whose_help_does_not_name_what_we_need_is_unsupported(world: World, target: Target) -> None:
    found = []
    for behaviour in POOR:
        world.stubs.behave(PROGRAMS[target.client], "help", **behaviour)
        found.append((behaviour, await world.client(target).discover(world.run)))

    assert found == [(behaviour, Discovery.UNSUPPORTED) for behaviour in POOR]


@TARGETS
async def test_a_program_in_a_relative_entry_of_the_path_is_not_used(
    world: World, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world.stubs.programs)

    assert await world.client(target, PATH=":.:").discover(world.run) is Discovery.MISSING


# --- several scopes of one client -----------------------------------------------------------------------------------


def claude(scope: str) -> Target:
    return Target("claude-code", scope)


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        *(("user", "local"), ("user", "project"), ("local", "user"), ("local", "project")),
        *(("project", "user"), ("project", "local")),
    ],
)
async def test_a_registration_in_another_scope_is_named_and_left_alone(world: World, asked: str, there: str) -> None:
    client = world.client(claude(asked))
    await world.client(claude(there)).add(world.run, claude(there), OTHER)

    inspection = await client.inspect(world.run, claude(asked), INTENT)
    hidden = await client.hidden_by(world.run, claude(asked))

    # Nothing hides a local one: what is shown instead is what the answer itself names.
    expected = (
        (Inspection(Seen.ABSENT, other_scope=there), None) if asked == "local" else (Inspection(Seen.ABSENT), there)
    )
    assert (inspection, hidden) == expected
    assert await client.add(world.run, claude(asked), INTENT)
    assert (await client.inspect(world.run, claude(asked), INTENT)).seen is Seen.EQUIVALENT
    assert await client.remove(world.run, claude(asked))
    still = await world.client(claude(there)).inspect(world.run, claude(there), OTHER)
    assert still.seen is Seen.EQUIVALENT


async def test_nothing_hides_a_user_scope_where_nothing_else_is_registered(world: World) -> None:
    client = world.client(claude("user"))

    assert await client.hidden_by(world.run, claude("user")) is None
    await client.add(world.run, claude("user"), INTENT)
    assert await client.hidden_by(world.run, claude("user")) is None


@dataclass(frozen=True, slots=True)
class FailingRunner:
    """A `Runner` whose commands give no answer."""

    kind: CommandFailure

    async def run(self, command: ClientCommand) -> ClientOutput:
        raise CommandFailed(self.kind)


async def test_not_knowing_what_hides_a_user_scope_is_no_failure_but_living_processes_are(world: World) -> None:
    client = world.client(claude("user"))

    assert await client.hidden_by(FailingRunner(CommandFailure.TIMEOUT), claude("user")) is None
    with pytest.raises(CommandFailed):
        await client.hidden_by(FailingRunner(CommandFailure.UNKNOWN_PROCESSES), claude("user"))


# --- which directories a target can mean ----------------------------------------------------------------------------


def accepts(world: World, scope: str, directory: Path) -> bool:
    return world.client(claude(scope), directory).accepts(claude(scope))


def test_local_means_the_directory_outside_of_repositories_and_the_top_inside(world: World) -> None:
    below = world.project / "below"
    below.mkdir()
    assert accepts(world, "local", world.project)
    assert accepts(world, "local", below)

    (world.project / ".git").mkdir()
    assert accepts(world, "local", world.project)
    assert not accepts(world, "local", below)
    assert accepts(world, "user", below)
    assert accepts(world, "project", below)


def test_a_linked_worktree_is_not_a_top_but_a_submodule_is(world: World) -> None:
    git = world.project.parent / "main" / ".git"
    (git / "worktrees" / "w").mkdir(parents=True)
    (git / "worktrees" / "w" / "commondir").write_text("../..\n")
    (git / "modules" / "m").mkdir(parents=True)

    (world.project / ".git").write_text(f"gitdir: {git / 'worktrees' / 'w'}\n")
    assert not accepts(world, "local", world.project)
    (world.project / ".git").write_text("gitdir: ../main/.git/modules/m\n")
    assert accepts(world, "local", world.project)


def test_a_repository_in_a_home_that_is_one_too_is_its_own_top(world: World) -> None:
    below = world.project / "below"
    below.mkdir()
    (world.project.parent / ".git").mkdir()
    assert not accepts(world, "local", world.project)

    (world.project / ".git").mkdir()

    assert accepts(world, "local", world.project)
    assert not accepts(world, "local", below)


def test_a_mark_of_a_repository_that_cannot_be_read_is_no_top(world: World) -> None:
    mark = world.project / ".git"
    mark.write_text(f"gitdir: {'x' * 5000}\n")
    assert not accepts(world, "local", world.project)
    mark.write_text("gitdir: " + "x" * 70_000)
    assert not accepts(world, "local", world.project)
    mark.unlink()
    os.mkfifo(mark)
    assert not accepts(world, "local", world.project)


def test_project_is_refused_below_another_projects_registrations(world: World) -> None:
    below = world.project / "below"
    below.mkdir()
    (world.project / ".mcp.json").write_text("{}")

    assert accepts(world, "project", world.project)
    assert not accepts(world, "project", below)
    assert accepts(world, "local", below)


# --- homes and places -----------------------------------------------------------------------------------------------

VARIABLES: Final = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "copilot": "COPILOT_HOME"}


@TARGETS
def test_a_home_that_depends_on_the_directory_is_no_home(world: World, target: Target) -> None:
    variable = VARIABLES[target.client]

    assert world.client(target).home_is_usable()
    assert world.client_with(target, variable, "").home_is_usable()
    assert world.client_with(target, variable, "/elsewhere").home_is_usable()
    assert not world.client_with(target, variable, "elsewhere").home_is_usable()
    assert not world.client(target, HOME="").home_is_usable()
    assert not world.client(target, HOME="here").home_is_usable()
    assert not client_named(target.client, AskedFrom({}, world.project, world.neutral)).home_is_usable()


def test_each_target_home_and_project_has_its_own_place(world: World, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    places = set()
    for target in ALL_TARGETS:
        places.add(world.client(target).place(target))
        for variable in ("HOME", VARIABLES[target.client]):
            places.add(world.client_with(target, variable, "/other").place(target))
        if target.scope != "user":
            places.add(world.client(target, elsewhere).place(target))

    assert len(places) == 3 * len(ALL_TARGETS) + 2
    assert all(len(place) == hashlib.sha256().digest_size * 2 for place in places)


def test_a_place_does_not_depend_on_how_it_is_written(world: World, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(world.project)
    home = str(world.stubs.home)

    assert world.client(claude("user"), link).place(claude("user")) == world.client(claude("user")).place(
        claude("user")
    )
    for other in (world.client(claude("local"), link), world.client(claude("local"), HOME=f"{home}/../home/")):
        assert other.place(claude("local")) == world.client(claude("local")).place(claude("local"))


def test_every_target_has_an_adapter_that_names_its_scopes(world: World) -> None:
    for target in ALL_TARGETS:
        client = world.client(target)
        assert (client.name, client.scopes) == (target.client, SCOPES[target.client])
        assert client.accepts(target)
    assert isinstance(world.client(claude("user")), ClaudeCode)


# --- what real clients' help says -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayingRunner:
    """A `Runner` that answers everything with one recorded output."""

    output: ClientOutput

    async def run(self, command: ClientCommand) -> ClientOutput:
        return self.output


@pytest.mark.parametrize(("client", "family"), [("claude-code", "claude-code"), ("codex", "codex")])
async def test_the_recorded_help_of_real_clients_names_what_we_need(world: World, client: str, family: str) -> None:
    helps = [call.output for call in recorded(family) if call.arguments == ("mcp", "--help")]

    for output in helps:
        adapter = world.client(Target(client, "user"))
        assert await adapter.discover(ReplayingRunner(output)) is Discovery.USABLE
    assert helps


async def test_a_help_that_lacks_one_of_the_three_commands_is_not_enough(world: World) -> None:
    (output,) = [call.output for call in recorded("codex") if call.arguments == ("mcp", "--help")]
    for verb in (b"get", b"add", b"remove"):
        lacking = ClientOutput(0, output.stdout.replace(b"  " + verb, b"  x" + verb), b"")
        adapter = world.client(Target("codex", "user"))
        assert await adapter.discover(ReplayingRunner(lacking)) is Discovery.UNSUPPORTED
