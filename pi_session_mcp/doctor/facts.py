"""What one look at this installation has seen. Pure: values only, and nothing in them that may not be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.config.place import Source
    from pi_session_mcp.host.protocol import PiFault
    from pi_session_mcp.platform.directory import Directory
    from pi_session_mcp.runtime.overrides import Ignored


@dataclass(frozen=True, slots=True)
class Unseen:
    """The look itself went wrong, so nothing is known."""


@dataclass(frozen=True, slots=True)
class Package:
    """What the installer left. `requires` is the oldest Python that the metadata allows, if they say one."""

    metadata_readable: bool
    requires: tuple[int, int] | None = None
    modified: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Node or the Pi SDK: `status` is `ok` or the code of what is wrong; `configured` says who chose it.

    `at_hand` says of a Node.js in which something is wrong that an install would find another that it can use.
    """

    status: str
    configured: bool
    at_hand: bool = False


@dataclass(frozen=True, slots=True)
class NoAgentDirectory:
    """There is no place for Pi's files that Pi could be told of."""


class AgentStore(StrEnum):
    """Whether Pi could take the lock without which it reads no credential."""

    FINE = "fine"
    NOT_WRITABLE = "not_writable"
    LOCKED = "locked"


class Greeted(StrEnum):
    """Whether Node loaded the SDK, and answered everything that it was asked."""

    WHOLE = "whole"
    BROKEN_OFF = "broken_off"
    NOT = "not"


class Unasked(StrEnum):
    """Why nobody could tell whether a credential can be used: a command would have to run, or a login to be renewed."""

    COMMAND = "command"
    RENEWAL = "renewal"


@dataclass(frozen=True, slots=True)
class ProfileSeen:
    """What Pi said of one profile, by its alias.

    `refused` is the code with which a start would be refused, as far as that could be told: `unasked` says what could
    not. An extension may bring what is missing to a profile that `may_be_extended`. Without an answer in time nothing
    is known.
    """

    alias: str
    answered: bool = True
    refused: str | None = None
    unasked: Unasked | None = None
    may_be_extended: bool = False


@dataclass(frozen=True, slots=True)
class PiSeen:
    """What Pi said of everything.

    `proxy_setting` says whether Pi's settings name a proxy; `left_out`, for each workspace that could be looked at,
    whether a session would go without files of instructions that are there.
    """

    greeted: Greeted
    files: tuple[PiFault, ...] | Unseen
    proxies: bool
    profiles: tuple[ProfileSeen, ...]
    proxy_setting: bool = False
    left_out: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the configuration was refused: the code, the rule, and the place. No value of the file."""

    code: str
    rule: str
    pointer: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Configured:
    """The configuration is valid."""


@dataclass(frozen=True, slots=True)
class Unnamed:
    """No file is named."""


class Held(StrEnum):
    """What decides about sessions, and lies inside a workspace."""

    CONFIGURATION = "configuration"
    AGENT_DIRECTORY = "agent_directory"
    RUNTIME = "runtime"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace, by its alias."""

    alias: str
    directory: Directory
    holds: Held | Unseen | None = None


class State(StrEnum):
    """Whether the records of registrations could be kept."""

    FINE = "fine"
    NO_HOME = "no_home"
    FILE_SYSTEM = "file_system"
    PERMISSIONS = "permissions"
    NOT_WRITABLE = "not_writable"
    INSPECT = "inspect"
    MARK_MCP = ".mcp.json"
    MARK_GIT = ".git"
    MARK_CODEX = ".codex"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class Pinned:
    """One pin of one profile; `status` is `ok`, the condition that was found, or `None` where nobody can tell."""

    profile: str
    package: str
    status: str | None


NO_HOME: str = "no_home"
"""Status of a pin when there is no place to look for it."""

Configuration: TypeAlias = Configured | Unnamed | Refused | Unseen


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that was seen. `None` stands for what was not looked at, because something else is missing."""

    python: tuple[int, int]
    platform: str
    package: Package | Unseen
    node: Part | Unseen | None
    sdk: Part | Unseen | None
    pi: PiSeen | NoAgentDirectory | Unseen | None
    agent_store: AgentStore | Unseen | None
    ignored_variable: Ignored | Unseen | None
    configuration: Configuration
    has_coding_profile: bool
    workspaces: tuple[Workspace, ...]
    has_search_tools: bool | Unseen | None
    has_temporary_directory: bool | Unseen
    state: State | Unseen
    pending: tuple[str, ...] | Unseen | None
    is_registered: bool | None = None
    kept_back: tuple[str, ...] | None = None
    """Variables about the network that are set here and that a registered client does not give the server."""
    pins: tuple[Pinned, ...]
    configuration_from: Source | None = None
    """What says where the configuration is; `None` where nothing does."""
