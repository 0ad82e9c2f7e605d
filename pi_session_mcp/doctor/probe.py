"""One look at this installation: the only I/O of the doctor.

Every part is looked at by itself, and what goes wrong there is that part's `Unseen`. Everything but the doctor's own
modules is imported inside a look, so that a broken installation can still be told about.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pi_session_mcp.doctor.facts import (
    NO_HOME,
    Configured,
    Facts,
    Held,
    NoAgentDirectory,
    Part,
    Pinned,
    Refused,
    State,
    Unnamed,
    Unseen,
    Workspace,
)
from pi_session_mcp.platform.directory import Directory
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.config.place import Place
    from pi_session_mcp.doctor import facts
    from pi_session_mcp.doctor.facts import AgentStore, PiSeen
    from pi_session_mcp.runtime.locate import Sdk
    from pi_session_mcp.runtime.overrides import Asked, Ignored
    from pi_session_mcp.runtime.record import Installed

_Seen = TypeVar("_Seen")
_Otherwise = TypeVar("_Otherwise")

_OK: Final = "ok"


@dataclass(frozen=True, slots=True)
class DoctorInputs:
    """Where to look: the environment, the working directory, the Python environment (`sys.prefix`), and the root."""

    environ: Mapping[str, str]
    cwd: Path
    prefix: Path | None = None
    package_root: Path | None = None
    platform: str = sys.platform
    root: Path = Path("/")

    @classmethod
    def here(cls) -> DoctorInputs:
        """This process's own."""
        try:
            cwd = Path.cwd()
        except OSError:
            cwd = Path(os.devnull)  # it was deleted, or lies behind a closed door: a place that nothing is below
        return cls(os.environ, cwd)


@dataclass(frozen=True, slots=True)
class _Runtime:
    """Node and the Pi SDK, and where they are."""

    node: Part | Unseen | None
    sdk: Part | Unseen | None
    has_search_tools: bool | Unseen | None
    places: tuple[Path, ...] = ()
    program: Path | None = None
    found: Sdk | None = None


def look(inputs: DoctorInputs) -> Facts:
    """Look once. Writes nothing, opens no socket, and runs nothing but Node. Never raises."""
    place, configuration, loaded = _survive(partial(_look_at_configuration, inputs), (None, Unseen(), None))
    asked = loaded or _survive(_nothing_asked, None)
    agent_directory = _survive(partial(_agent_directory, asked, inputs), Unseen())
    nothing = _Runtime(Unseen(), Unseen(), Unseen())
    runtime = _survive(partial(_look_at_runtime, asked, agent_directory, inputs), nothing)
    state_directory = _survive(partial(_state_directory, inputs), Unseen())
    state, pending = _survive(partial(_look_at_state, state_directory, inputs), (Unseen(), None))
    held = (
        *((Held.CONFIGURATION, one.path) for one in (place,) if one is not None),
        *((Held.AGENT_DIRECTORY, path) for path in (agent_directory,) if isinstance(path, Path)),
        *((Held.RUNTIME, path) for path in (*runtime.places, Path(__file__).parents[1])),
        *((Held.STATE, path) for path in (state_directory,) if isinstance(path, Path)),
    )
    return Facts(
        python=sys.version_info[:2],
        platform=inputs.platform,
        package=_survive(partial(_look_at_package, inputs), Unseen()),
        node=runtime.node,
        sdk=runtime.sdk,
        pi=_survive(partial(_look_at_pi, asked, loaded, agent_directory, runtime, inputs), Unseen()),
        agent_store=_survive(partial(_agent_store, agent_directory), Unseen()),
        ignored_variable=_survive(partial(_ignored_variable, asked, inputs), Unseen()),
        configuration=configuration,
        configuration_from=None if place is None else place.source,
        has_coding_profile=_has_coding_profile(loaded),
        workspaces=tuple(
            _look_at_workspace(alias, path, held) for alias, path in (loaded.workspaces if loaded else {}).items()
        ),
        has_search_tools=runtime.has_search_tools,
        has_temporary_directory=_survive(partial(_has_temporary_directory, inputs), Unseen()),
        state=state,
        pending=pending,
        is_registered=_survive(partial(_is_registered, state_directory), None),
        kept_back=_survive(partial(_kept_back, state_directory, inputs), None),
        pins=_look_at_pins(loaded, agent_directory),
    )


def _survive(see: Callable[[], _Seen], otherwise: _Otherwise) -> _Seen | _Otherwise:
    """What was seen, or `otherwise`: whatever goes wrong inside one look must not end the others."""
    try:
        return see()
    except Exception:  # noqa: BLE001 - a deleted module, a damaged dependency, a defect of ours: all are findings
        return otherwise


def _look_at_package(inputs: DoctorInputs) -> facts.Package:
    from pi_session_mcp.doctor.package import look_at_package

    return look_at_package(inputs.package_root)


def _look_at_configuration(inputs: DoctorInputs) -> tuple[Place | None, facts.Configuration, Configuration | None]:
    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.config.load import load
    from pi_session_mcp.config.place import place_to_read

    place = place_to_read(inputs.environ.get(VARIABLE, ""), inputs.environ, inputs.cwd)
    if place is None:
        return None, Unnamed(), None
    try:
        return place, Configured(), load(place.path)
    except ConfigError as refused:
        where = (refused.pointer, refused.line, refused.column)
        return place, Refused(refused.code.value, refused.rule, *where), None


def _nothing_asked() -> Asked:
    from pi_session_mcp.runtime.overrides import NothingAsked

    return NothingAsked()


def _has_coding_profile(loaded: Configuration | None) -> bool:
    profiles = loaded.execution_profiles.values() if loaded else ()
    return any(profile.permission_profile == "coding" for profile in profiles)


def _agent_directory(asked: Asked | None, inputs: DoctorInputs) -> Path | Unseen | None:
    """Pi's agent directory; `None` when there is no home directory to look for it in."""
    from pi_session_mcp.errors import Refusal
    from pi_session_mcp.runtime.agent_directory import agent_directory

    if asked is None:
        return Unseen()
    try:
        return agent_directory(asked, inputs.environ, inputs.cwd)
    except Refusal:
        return None


def _ignored_variable(asked: Asked | None, inputs: DoctorInputs) -> Ignored | Unseen | None:
    from pi_session_mcp.runtime.agent_directory import ignored_variable

    return Unseen() if asked is None else ignored_variable(asked, inputs.environ, inputs.cwd)


def _look_at_runtime(asked: Asked | None, agent_directory: Path | Unseen | None, inputs: DoctorInputs) -> _Runtime:
    from pi_session_mcp.runtime.problem import RuntimeProblem
    from pi_session_mcp.runtime.record import find_installed

    if asked is None:
        return _Runtime(Unseen(), Unseen(), Unseen())
    try:
        installed = find_installed(inputs.environ, inputs.prefix)
    except RuntimeProblem as problem:  # its record is damaged, and it is the record that says which Node decides
        return _Runtime(None, Part(problem.code.value, configured=False), None)
    node, program = _look_at_node(asked, installed, inputs)
    sdk, found = _look_at_sdk(asked, installed, inputs)
    tools = None if found is None else _has_search_tools(asked, found, installed, agent_directory, inputs)
    places = (
        *((program,) if program else ()),
        *((found.package,) if found else ()),
        *((installed.place.root,) if installed else ()),
    )
    usable = program if node.status == _OK else None
    return _Runtime(node, sdk, tools, places, usable, found)


def _look_at_node(asked: Asked, installed: Installed | None, inputs: DoctorInputs) -> tuple[Part, Path | None]:
    from pi_session_mcp.doctor.node import is_at_hand, judge
    from pi_session_mcp.runtime.locate import find_node
    from pi_session_mcp.runtime.overrides import untrusted_directories
    from pi_session_mcp.runtime.problem import RuntimeProblem

    configured, program = asked.runtime.node is not None, None
    try:
        program = find_node(asked, inputs.environ, inputs.cwd, installed).program
        code = judge(program, inputs.environ)
    except RuntimeProblem as problem:
        code = problem.code
    untrusted = tuple(untrusted_directories(asked, inputs.cwd))
    at_hand = code.value != _OK and not configured and is_at_hand(inputs.environ, untrusted, inputs.prefix)
    return Part(code.value, configured=configured, at_hand=at_hand), program


def _look_at_sdk(asked: Asked, installed: Installed | None, inputs: DoctorInputs) -> tuple[Part, Sdk | None]:
    from pi_session_mcp.runtime.locate import find_sdk, find_tools
    from pi_session_mcp.runtime.problem import RuntimeProblem

    configured = asked.runtime.sdk is not None
    try:
        sdk = find_sdk(asked, inputs.environ, inputs.cwd, installed)
        find_tools(sdk, installed)
    except RuntimeProblem as problem:
        return Part(problem.code.value, configured=configured), None
    return Part(_OK, configured=configured), sdk


def _has_search_tools(
    asked: Asked, sdk: Sdk, installed: Installed | None, agent_directory: Path | Unseen | None, inputs: DoctorInputs
) -> bool:
    """Whether Pi would find `rg`: with the runtime, where Pi itself puts it, or on `PATH`."""
    from pi_session_mcp.platform.files import is_program
    from pi_session_mcp.runtime.locate import find_tools
    from pi_session_mcp.runtime.overrides import untrusted_directories
    from pi_session_mcp.runtime.programs import find_program

    if find_tools(sdk, installed) is not None:
        return True
    if isinstance(agent_directory, Path) and is_program(agent_directory / "bin" / "rg"):
        return True
    return find_program("rg", inputs.environ, untrusted_directories(asked, inputs.cwd)) is not None


def _has_temporary_directory(inputs: DoctorInputs) -> bool:
    from pi_session_mcp.platform.temporary import is_usable, named_temporary_directory

    return is_usable(named_temporary_directory(inputs.environ))


def _agent_store(directory: Path | Unseen | None) -> AgentStore | Unseen | None:
    from pi_session_mcp.doctor.agent_store import look_at_store

    return look_at_store(directory) if isinstance(directory, Path) else None


def _look_at_pi(
    asked: Asked | None,
    loaded: Configuration | None,
    directory: Path | Unseen | None,
    runtime: _Runtime,
    inputs: DoctorInputs,
) -> PiSeen | NoAgentDirectory | Unseen | None:
    """What Pi itself says; nothing where there is no Node or no SDK, of which another check tells."""
    if isinstance(directory, Unseen) or asked is None:
        return Unseen()
    if directory is None:
        return NoAgentDirectory()
    if runtime.program is None or runtime.found is None:
        return None
    from pi_session_mcp.doctor.pi import ask_pi
    from pi_session_mcp.host.variables import host_variables
    from pi_session_mcp.runtime.locate import bundle_of

    variables = host_variables(asked, inputs.environ, inputs.cwd, tools=None)
    profiles = loaded.execution_profiles if loaded else {}
    workspaces = loaded.workspaces if loaded else {}
    return ask_pi(runtime.program, runtime.found.entry, bundle_of(runtime.found), variables, profiles, workspaces)


def _look_at_workspace(alias: str, path: Path, held: tuple[tuple[Held, Path], ...]) -> Workspace:
    directory = _survive(partial(_directory, path), Directory.UNSEEN)
    holds: Held | Unseen | None = None
    if directory is Directory.WRITABLE:
        holds = _survive(partial(_first_below, path, held), Unseen())
    return Workspace(alias, directory, holds)


def _directory(path: Path) -> Directory:
    from pi_session_mcp.platform.files import look_at_directory

    return look_at_directory(path)


def _first_below(workspace: Path, held: tuple[tuple[Held, Path], ...]) -> Held | None:
    from pi_session_mcp.platform.paths import is_below

    return next((kind for kind, path in held if is_below(path, workspace)), None)


def _state_directory(inputs: DoctorInputs) -> Path | None:
    """Where setup keeps its records; `None` when there is no home directory to say."""
    from pi_session_mcp.setup.result import Stopped
    from pi_session_mcp.setup.state_directory import state_directory

    try:
        return state_directory(inputs.environ)
    except Stopped:
        return None


def _look_at_state(
    directory: Path | Unseen | None, inputs: DoctorInputs
) -> tuple[State | Unseen, tuple[str, ...] | Unseen | None]:
    """Whether setup could keep records, and the targets of which a transaction has not been seen to end."""
    if isinstance(directory, Unseen):
        return directory, None
    if directory is None:
        return State.NO_HOME, None
    state = _judge(directory, inputs)
    if state is not State.FINE:
        return state, None
    return _survive(partial(_read_records, directory), (state, Unseen())) if directory.exists() else (state, ())


def _judge(directory: Path, inputs: DoctorInputs) -> State:
    """As setup judges it before it makes anything."""
    from pi_session_mcp.platform.files import can_make
    from pi_session_mcp.platform.filesystem import has_trusted_locks
    from pi_session_mcp.platform.supported import SUPPORTED
    from pi_session_mcp.setup.state_directory import is_safe, nearest_directory

    known = inputs.platform in SUPPORTED  # elsewhere it is the platform that is refused
    if known and not has_trusted_locks(nearest_directory(directory), platform=inputs.platform):
        return State.FILE_SYSTEM
    if not is_safe(directory):
        return State.PERMISSIONS
    return _judge_view(directory, inputs) if can_make(directory) else State.NOT_WRITABLE


def _judge_view(directory: Path, inputs: DoctorInputs) -> State:
    """Whether user scopes can be seen alone, as setup judges it when it has made its directory."""
    from pi_session_mcp.setup.clients.base import CommandFailed
    from pi_session_mcp.setup.clients.neutral import neutral_directory
    from pi_session_mcp.setup.state_directory import NEUTRAL

    try:
        neutral_directory(directory / NEUTRAL, inputs.environ, inputs.root, once_made=True)
    except CommandFailed as failed:
        return State.INSPECT if failed.mark is None else State(failed.mark)
    return State.FINE


def _read_records(directory: Path) -> tuple[State, tuple[str, ...] | None]:
    from pi_session_mcp.setup.ownership import Ownership, OwnershipUnavailable

    try:
        book = Ownership(directory).read()
    except OwnershipUnavailable:
        return State.RECORDS, None
    return State.FINE, tuple(target.short for target in book.pending_targets())


def _is_registered(directory: Path | Unseen | None) -> bool | None:
    """Whether setup has registered this server anywhere; `None` when its records do not say."""
    from pi_session_mcp.doctor.registrations import registered_clients

    return bool(registered_clients(directory)) if isinstance(directory, Path) else None


def _kept_back(directory: Path | Unseen | None, inputs: DoctorInputs) -> tuple[str, ...] | None:
    from pi_session_mcp.doctor.registrations import kept_back_variables

    return kept_back_variables(directory, inputs.environ) if isinstance(directory, Path) else None


def _look_at_pins(loaded: Configuration | None, agent_directory: Path | Unseen | None) -> tuple[Pinned, ...]:
    if loaded is None:
        return ()
    unseen = _survive(partial(_without_status, loaded, None), ())
    if isinstance(agent_directory, Unseen):
        return unseen
    if agent_directory is None:
        return _survive(partial(_without_status, loaded, NO_HOME), unseen)
    return _survive(partial(_resolved, loaded, agent_directory), unseen)


def _resolved(loaded: Configuration, agent_directory: Path) -> tuple[Pinned, ...]:
    if not any(profile.extensions for profile in loaded.execution_profiles.values()):
        return ()
    from pi_session_mcp.extensions.check import check

    found = check(loaded, agent_directory)
    return tuple(Pinned(one.profile, one.pin.name, one.condition.value if one.condition else _OK) for one in found)


def _without_status(loaded: Configuration, status: str | None) -> tuple[Pinned, ...]:
    from pi_session_mcp.terms import pin

    profiles: Any = loaded.execution_profiles.items()
    return tuple(
        Pinned(alias, pin.parse(text).name, status) for alias, profile in profiles for text in profile.extensions
    )
