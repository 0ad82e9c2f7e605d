"""From what was seen to what is wrong. Pure.

Where one thing needs another (a version needs a program), the first that is found to be wrong ends the line: what
comes after it is not reported, since nothing can be said about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.facts import (
    NO_HOME,
    Configured,
    Facts,
    Held,
    Package,
    Part,
    Pinned,
    PiSeen,
    Refused,
    State,
    Unnamed,
    Unseen,
    Workspace,
)
from pi_session_mcp.doctor.made import Check, fine, found, up_to
from pi_session_mcp.doctor.passing import ALL_VARIABLES, CERTIFICATES, PROXIES
from pi_session_mcp.doctor.profiles import pi, store
from pi_session_mcp.doctor.words import ORDER, ROWS, Id, Remedy
from pi_session_mcp.platform.directory import Directory
from pi_session_mcp.platform.supported import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.runtime.overrides import Ignored

MINIMUM_PYTHON: Final = (3, 11)
"""What the package requires, for when its metadata do not say."""


def decide(facts: Facts) -> tuple[Check, ...]:
    """Every check that these facts allow, in the table's order and then by subject."""
    made = (
        *_python(facts),
        *_platform(facts),
        *_package(facts.package),
        *_node(facts.node),
        *_sdk(facts.sdk),
        *_ignored(facts.ignored_variable),
        *pi(facts.pi),
        *store(facts.agent_store),
        *_kept_back(facts),
        *_configuration(facts),
        *(check for workspace in facts.workspaces for check in _workspace(workspace, facts)),
        *_instructions(facts),
        *_search_tools(facts.has_search_tools),
        *_temporary_directory(facts.has_temporary_directory),
        *_state(facts.state),
        *_pending(facts.pending),
        *(check for pin in facts.pins for check in _pin(pin)),
    )
    return tuple(sorted(made, key=lambda check: (ORDER[check.id], check.subject)))


def _python(facts: Facts) -> Iterator[Check]:
    stated = facts.package.requires if isinstance(facts.package, Package) else None
    found = Id.PYTHON_VERSION_UNSUPPORTED if facts.python < (stated or MINIMUM_PYTHON) else None
    yield from up_to((Id.PYTHON_VERSION_UNSUPPORTED,), found, Remedy.SUPPORTED_PYTHON)


def _platform(facts: Facts) -> Iterator[Check]:
    found = None if facts.platform in SUPPORTED else Id.PLATFORM_UNSUPPORTED
    yield from up_to((Id.PLATFORM_UNSUPPORTED,), found, Remedy.SUPPORTED_PLATFORM)


def _package(package: Package | Unseen) -> Iterator[Check]:
    line = (Id.PACKAGE_METADATA_UNREADABLE, Id.PACKAGE_MODIFIED)
    if isinstance(package, Unseen):
        yield from up_to(line, line[0], Remedy.UNCHECKED)
    elif not package.metadata_readable:
        yield from up_to(line, line[0], Remedy.REINSTALL)
    else:
        yield from up_to(line, line[1] if package.modified else None, Remedy.REINSTALL)


def _node(node: Part | Unseen | None) -> Iterator[Check]:
    line = (Id.NODE_MISSING, Id.NODE_VERSION_UNSUPPORTED)
    own = {Id.NODE_MISSING: Remedy.NODE, Id.NODE_VERSION_UNSUPPORTED: Remedy.NODE_VERSION}
    if isinstance(node, Part) and node.at_hand:
        own = dict.fromkeys(own, Remedy.RUNTIME)
    yield from _part(node, line, own, Remedy.CONFIGURED_NODE)


def _sdk(sdk: Part | Unseen | None) -> Iterator[Check]:
    line = (Id.PI_RUNTIME_MISSING, Id.PI_VERSION_UNSUPPORTED)
    yield from _part(sdk, line, dict.fromkeys(line, Remedy.RUNTIME), Remedy.CONFIGURED_SDK)


def _part(
    part: Part | Unseen | None, line: tuple[Id, ...], own: dict[Id, Remedy], configured: Remedy
) -> Iterator[Check]:
    match part:
        case None:
            return
        case Unseen():
            yield from up_to(line, line[0], Remedy.UNCHECKED)
        case Part():
            found = next((what for what in line if what.value == part.status), None)
            yield from up_to(line, found, configured if part.configured else own[found or line[0]])


def _ignored(variable: Ignored | Unseen | None) -> Iterator[Check]:
    remedies = {"not_absolute": Remedy.ABSOLUTE_VARIABLE, "in_project": Remedy.VARIABLE_OUTSIDE}
    what = Id.PI_AGENT_DIRECTORY_IGNORED
    match variable:
        case None:
            yield fine(what)
        case Unseen():
            yield found(what, Remedy.UNCHECKED)
        case _:
            yield found(what, remedies[variable.value])


_PASSING: Final = dict.fromkeys(PROXIES, Remedy.PROXY_SETTING) | dict.fromkeys(CERTIFICATES, Remedy.EXTRA_CERTIFICATES)


def _kept_back(facts: Facts) -> Iterator[Check]:
    """Which variables a registered client keeps back; those that name a proxy count only where Pi's settings do not."""
    what = Id.VARIABLE_NOT_PASSED_ON
    if facts.kept_back is None:
        return
    has_setting = isinstance(facts.pi, PiSeen) and facts.pi.proxy_setting
    lost = [name for name in facts.kept_back if not (has_setting and name in PROXIES)]
    if not lost:
        yield fine(what, ALL_VARIABLES)
    for name in lost:
        yield found(what, _PASSING.get(name, Remedy.PASS_VARIABLE), name)


def _instructions(facts: Facts) -> Iterator[Check]:
    what = Id.WORKSPACE_INSTRUCTIONS_LEFT_OUT
    left_out = facts.pi.left_out if isinstance(facts.pi, PiSeen) else {}
    usable = {one.alias for one in facts.workspaces if one.directory in {Directory.WRITABLE, Directory.READ_ONLY}}
    for alias in usable & left_out.keys():
        yield found(what, Remedy.INSTRUCTIONS, alias) if left_out[alias] else fine(what, alias)


def _configuration(facts: Facts) -> Iterator[Check]:
    line = (Id.CONFIG_MISSING, Id.CONFIG_UNREADABLE, Id.CONFIG_INVALID)
    match facts.configuration:
        case Configured():
            yield from up_to(line, None, Remedy.VALID_CONFIGURATION)
        case Unnamed():
            yield from up_to(line, Id.CONFIG_MISSING, Remedy.NAME_CONFIGURATION)
        case Unseen():
            yield from up_to(line, Id.CONFIG_UNREADABLE, Remedy.UNCHECKED)
        case Refused(code=Id.CONFIG_MISSING.value):
            yield from up_to(line, Id.CONFIG_MISSING, Remedy.WRITE_CONFIGURATION)
        case Refused(code=Id.CONFIG_UNREADABLE.value):
            yield from up_to(line, Id.CONFIG_UNREADABLE, Remedy.READABLE_CONFIGURATION)
        case Refused() as refused:
            yield from (fine(what) for what in line[:-1])
            yield _invalid(refused)


def _invalid(refused: Refused) -> Check:
    row = ROWS[Id.CONFIG_INVALID]
    return Check(
        row.id,
        row.severity,
        row.subject,
        Remedy.VALID_CONFIGURATION,
        pointer=refused.pointer,
        line=refused.line,
        column=refused.column,
        rule=refused.rule,
    )


_DIRECTORIES: Final = {
    Directory.UNSEEN: (Id.WORKSPACE_MISSING, Remedy.UNCHECKED),
    Directory.MISSING: (Id.WORKSPACE_MISSING, Remedy.WORKSPACE),
    Directory.NOT_DIRECTORY: (Id.WORKSPACE_NOT_DIRECTORY, Remedy.WORKSPACE_DIRECTORY),
    Directory.UNNAMEABLE: (Id.WORKSPACE_PATH_NOT_UTF8, Remedy.UTF8_WORKSPACE),
    Directory.UNREADABLE: (Id.WORKSPACE_UNREADABLE, Remedy.READABLE_WORKSPACE),
    Directory.READ_ONLY: (Id.WORKSPACE_NOT_WRITABLE, Remedy.WRITABLE_WORKSPACE),
}
_HELD: Final = {
    Held.CONFIGURATION: Remedy.CONFIGURATION_OUTSIDE,
    Held.AGENT_DIRECTORY: Remedy.AGENT_DIRECTORY_OUTSIDE,
    Held.RUNTIME: Remedy.RUNTIME_OUTSIDE,
    Held.STATE: Remedy.STATE_OUTSIDE,
}


def _workspace(workspace: Workspace, facts: Facts) -> Iterator[Check]:
    line = (
        Id.WORKSPACE_MISSING,
        Id.WORKSPACE_NOT_DIRECTORY,
        Id.WORKSPACE_PATH_NOT_UTF8,
        Id.WORKSPACE_UNREADABLE,
        Id.WORKSPACE_NOT_WRITABLE,
        Id.WORKSPACE_CONTAINS_POLICY,
    )
    what, remedy = _finding(workspace, has_coding_profile=facts.has_coding_profile)
    yield from up_to(line, what, remedy, workspace.alias)


def _finding(workspace: Workspace, *, has_coding_profile: bool) -> tuple[Id | None, Remedy]:
    harmless = workspace.directory.is_usable and not has_coding_profile
    if workspace.directory in _DIRECTORIES and not harmless:
        return _DIRECTORIES[workspace.directory]
    if harmless or workspace.holds is None:
        return None, Remedy.WORKSPACE
    held = workspace.holds
    return Id.WORKSPACE_CONTAINS_POLICY, Remedy.UNCHECKED if isinstance(held, Unseen) else _HELD[held]


def _search_tools(there: bool | Unseen | None) -> Iterator[Check]:  # noqa: FBT001 - a fact, not a flag
    what = Id.SEARCH_TOOLS_MISSING
    match there:
        case None:
            return
        case Unseen():
            yield found(what, Remedy.UNCHECKED)
        case _:
            yield fine(what) if there else found(what, Remedy.SEARCH_TOOLS)


def _temporary_directory(usable: bool | Unseen) -> Iterator[Check]:  # noqa: FBT001 - a fact, not a flag
    what = Id.TEMPORARY_DIRECTORY_UNUSABLE
    if isinstance(usable, Unseen):
        yield found(what, Remedy.UNCHECKED)
    else:
        yield fine(what) if usable else found(what, Remedy.TEMPORARY_DIRECTORY)


def _state(state: State | Unseen) -> Iterator[Check]:
    remedies = {
        State.NO_HOME: Remedy.HOME,
        State.FILE_SYSTEM: Remedy.STATE_FILE_SYSTEM,
        State.PERMISSIONS: Remedy.STATE_PERMISSIONS,
        State.NOT_WRITABLE: Remedy.STATE_WRITABLE,
        State.INSPECT: Remedy.STATE_INSPECT,
        State.MARK_MCP: Remedy.STATE_MARK_MCP,
        State.MARK_GIT: Remedy.STATE_MARK_GIT,
        State.MARK_CODEX: Remedy.STATE_MARK_CODEX,
        State.RECORDS: Remedy.STATE_RECORDS,
    }
    remedy = Remedy.UNCHECKED if isinstance(state, Unseen) else remedies.get(state)
    what = Id.STATE_DIRECTORY_UNSUPPORTED
    yield fine(what) if remedy is None else found(what, remedy)


def _pending(targets: tuple[str, ...] | Unseen | None) -> Iterator[Check]:
    what = Id.SETUP_PENDING
    subject = ROWS[Id.STATE_DIRECTORY_UNSUPPORTED].subject
    match targets:
        case None:
            return
        case Unseen():
            yield found(what, Remedy.UNCHECKED, subject)
        case ():
            yield fine(what, subject)
        case _:
            yield from (found(what, Remedy.PENDING, target) for target in targets)


_PINS: Final = {
    None: (Id.EXTENSION_MISSING, Remedy.UNCHECKED),
    NO_HOME: (Id.EXTENSION_MISSING, Remedy.AGENT_DIRECTORY),
    "extension_missing": (Id.EXTENSION_MISSING, Remedy.INSTALL_EXTENSION),
    "extension_version_mismatch": (Id.EXTENSION_VERSION_MISMATCH, Remedy.MATCH_EXTENSION),
    "extension_in_workspace": (Id.EXTENSION_IN_WORKSPACE, Remedy.EXTENSION_OUTSIDE),
    "extension_broken": (Id.EXTENSION_BROKEN, Remedy.WHOLE_EXTENSION),
    "extension_form_unsupported": (Id.EXTENSION_FORM_UNSUPPORTED, Remedy.SUPPORTED_FORM),
    "package_without_extension": (Id.PACKAGE_WITHOUT_EXTENSION, Remedy.EXTENSIONS_ONLY),
    "extension_dependency_missing": (Id.EXTENSION_DEPENDENCY_MISSING, Remedy.DEPENDENCIES),
    "extension_dependency_outside": (Id.EXTENSION_DEPENDENCY_OUTSIDE, Remedy.COPIED_DEPENDENCIES),
}
"""The conditions of `extensions/outcomes.py`, which may be missing where the doctor is asked why."""
_OF_A_PIN: Final = (
    Id.EXTENSION_MISSING,
    Id.EXTENSION_VERSION_MISMATCH,
    Id.EXTENSION_IN_WORKSPACE,
    Id.EXTENSION_BROKEN,
    Id.EXTENSION_FORM_UNSUPPORTED,
    Id.PACKAGE_WITHOUT_EXTENSION,
    Id.EXTENSION_DEPENDENCY_MISSING,
    Id.EXTENSION_DEPENDENCY_OUTSIDE,
)


def _pin(pin: Pinned) -> Iterator[Check]:
    subject = f"{pin.profile}:{pin.package}"
    if pin.status == "ok":
        yield from up_to(_OF_A_PIN, None, Remedy.UNCHECKED, subject)
        return
    what, remedy = _PINS.get(pin.status, _PINS[None])
    if what is Id.EXTENSION_BROKEN:  # its manifest may be what is broken, so nothing else is known
        yield fine(Id.EXTENSION_MISSING, subject)
        yield found(what, remedy, subject)
    else:
        yield from up_to(_OF_A_PIN, what, remedy, subject)
