"""The operator's configuration, immutable. Pure.

The pydantic models have the form of the file, and the JSON Schema is generated from them. The rest of the program gets
`Configuration`: the same with resolved paths and the fingerprint of the bytes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from pi_session_mcp.config.checks import ENTRY_BY_ENTRY, SEALED, broken, matching, no_entries, only, repeats, sized
from pi_session_mcp.config.pointer import ALIAS_PATTERN, Breach
from pi_session_mcp.config.rules import Rule
from pi_session_mcp.terms import pin
from pi_session_mcp.terms.pin import Pin
from pi_session_mcp.terms.selection import Selection, ThinkingLevel
from pi_session_mcp.terms.tool_names import exposed_name

if TYPE_CHECKING:
    from pathlib import Path

MAX_SERVERS: Final = 8
MAX_GRANTS: Final = 64
MAX_ARGUMENTS: Final = 128
MAX_VARIABLES: Final = 64
MAX_PINS: Final = 8
DEFAULT_MAX_SESSIONS: Final = 32

_SHORT_ALIAS: Final = "[a-z][a-z0-9_-]{0,23}"
_VARIABLE: Final = "[A-Z_][A-Z0-9_]{0,127}"
_PATH: Final = r"[^\x00]+"
_ABSOLUTE_PATH: Final = r"/[^\x00]*"
_COMMAND: Final = r"/[^\x00]{0,4095}"
_ARGUMENT: Final = r"[^\x00]{0,4096}"
_REMOTE_NAME: Final = r"[\s\S]{1,256}"
_TRIMMED: Final = r"\s*(?:\S|\S[\s\S]{0,254}\S)\s*"
_PIN_LENGTH: Final = {"maxLength": pin.MAX_PIN_CHARACTERS}


def _text(pattern: str, **more: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", **more})


def _selectable(text: str) -> bool:
    plain = all(unicodedata.category(character) not in {"Cc", "Cf"} for character in text)
    return plain and 1 <= len(text) <= 256


def _pin_of(text: object) -> object:
    return pin.parse(text) if isinstance(text, str) else text


Alias: TypeAlias = Annotated[str, only(Rule.ALIAS, matching(ALIAS_PATTERN)), _text(ALIAS_PATTERN)]
ShortAlias: TypeAlias = Annotated[str, only(Rule.SHORT_ALIAS, matching(_SHORT_ALIAS)), _text(_SHORT_ALIAS)]
ChildVariable: TypeAlias = Annotated[str, only(Rule.CHILD_VARIABLE, matching(_VARIABLE)), _text(_VARIABLE)]
HostVariable: TypeAlias = Annotated[str, only(Rule.HOST_VARIABLE, matching(_VARIABLE)), _text(_VARIABLE)]
PathText: TypeAlias = Annotated[str, only(Rule.PATH, matching(_PATH)), _text(_PATH)]
OptionalPathText: TypeAlias = Annotated[str | None, only(Rule.PATH, matching(_PATH)), _text(_PATH)]
OptionalAbsolutePath: TypeAlias = Annotated[
    str | None, only(Rule.ABSOLUTE_PATH, matching(_ABSOLUTE_PATH)), _text(_ABSOLUTE_PATH)
]
Command: TypeAlias = Annotated[str, only(Rule.COMMAND, matching(_COMMAND)), _text(_COMMAND)]
Argument: TypeAlias = Annotated[str, only(Rule.ARGUMENT, matching(_ARGUMENT)), _text(_ARGUMENT)]
RemoteName: TypeAlias = Annotated[str, only(Rule.REMOTE_NAME, matching(_REMOTE_NAME)), _text(_REMOTE_NAME)]
SelectedName: TypeAlias = Annotated[str, AfterValidator(str.strip), only(Rule.SELECTION, _selectable), _text(_TRIMMED)]
ExactPin: TypeAlias = Annotated[Pin, BeforeValidator(_pin_of), only(Rule.PIN), _text(pin.PIN_PATTERN, **_PIN_LENGTH)]
Flag: TypeAlias = Annotated[bool, only(Rule.TRUE_OR_FALSE)]

PermissionProfile: TypeAlias = Literal["read-only", "coding"]
FileAccess: TypeAlias = Literal["workspace", "user"]


class Strict(BaseModel):
    """A part of the file. It takes no unknown field, converts no value, and cannot be changed.

    Python code uses the Python names of fields, and the file has the camelCase names.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
    )


class Grant(Strict):
    """One tool of an external MCP server, by its remote name, that a profile allows."""

    name: RemoteName
    read_only: Flag


class McpServer(Strict):
    """An external MCP server that a profile's sessions may use, and what they may use of it."""

    command: Command
    args: Annotated[
        tuple[Argument, ...],
        sized(tuple, Rule.TOO_MANY_ARGUMENTS, lambda size: size <= MAX_ARGUMENTS),
        Field(json_schema_extra={"maxItems": MAX_ARGUMENTS}),
    ] = ()
    env_from: Annotated[
        Mapping[ChildVariable, HostVariable],
        sized(Mapping, Rule.TOO_MANY_VARIABLES, lambda size: size <= MAX_VARIABLES),
        SEALED,
        Field(
            default_factory=no_entries,
            json_schema_extra={"maxProperties": MAX_VARIABLES},
            description="Variable of the MCP server: name of the variable of this machine that has its value.",
        ),
    ]
    tools: Annotated[
        Mapping[ShortAlias, Grant],
        ENTRY_BY_ENTRY,
        sized(Mapping, Rule.NO_GRANT, lambda size: size > 0),
        SEALED,
        Field(json_schema_extra={"minProperties": 1}),
    ]

    @model_validator(mode="after")
    def _grants_each_tool_once(self) -> Self:
        named = [
            (grant.name, Breach(("tools", alias, "name"), Rule.REMOTE_NAME_TWICE))
            for alias, grant in self.tools.items()
        ]
        if again := repeats(named):
            raise broken(*again)
        return self


def _usual_file_access(known: dict[str, Any]) -> FileAccess:
    return "workspace" if known["permission_profile"] == "read-only" else "user"


_WHEN_READ_ONLY: Final[dict[str, Any]] = {
    "if": {"properties": {"permissionProfile": {"const": "read-only"}}},
    "then": {
        "properties": {
            "mcpServers": {
                "additionalProperties": {
                    "properties": {"tools": {"additionalProperties": {"properties": {"readOnly": {"const": True}}}}}
                }
            }
        }
    },
    "else": {"properties": {"fileAccess": {"const": "user"}, "default": {"const": False}}},
}


class ExecutionProfile(Strict):
    """What a session of this profile runs as. `provider` and `model` are trimmed; `extensions` are its pins."""

    model_config = ConfigDict(json_schema_extra=_WHEN_READ_ONLY)

    default: Flag = False
    permission_profile: Annotated[PermissionProfile, only(Rule.PERMISSION_PROFILE)]
    provider: SelectedName
    model: SelectedName
    thinking_level: Annotated[ThinkingLevel, only(Rule.THINKING_LEVEL)]
    file_access: Annotated[
        FileAccess,
        only(Rule.FILE_ACCESS),
        Field(
            default_factory=_usual_file_access,
            description="What the session may read: its workspace, or what the user may. "
            "Without it: workspace for read-only profiles, user for coding profiles.",
        ),
    ]
    mcp_servers: Annotated[
        Mapping[ShortAlias, McpServer],
        sized(Mapping, Rule.TOO_MANY_SERVERS, lambda size: size <= MAX_SERVERS),
        SEALED,
        Field(default_factory=no_entries, json_schema_extra={"maxProperties": MAX_SERVERS}),
    ]
    extensions: Annotated[
        tuple[ExactPin, ...],
        sized(tuple, Rule.TOO_MANY_PINS, lambda size: size <= MAX_PINS),
        Field(json_schema_extra={"maxItems": MAX_PINS}),
    ] = ()

    @property
    def selection(self) -> Selection:
        """Which model its sessions work with."""
        return Selection(self.provider, self.model, self.thinking_level)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if breaches := [*self._permission_breaches(), *self._grant_breaches(), *self._pin_breaches()]:
            raise broken(*breaches)
        return self

    def _permission_breaches(self) -> list[Breach]:
        if self.permission_profile == "read-only":
            return [
                Breach((*path, "readOnly"), Rule.READ_ONLY_GRANT)
                for path, grant in self._grants().items()
                if not grant.read_only
            ]
        breaches = []
        if self.default:
            breaches.append(Breach(("permissionProfile",), Rule.DEFAULT_NOT_READ_ONLY))
        if self.file_access != "user":
            breaches.append(Breach(("fileAccess",), Rule.CODING_FILE_ACCESS))
        return breaches

    def _grant_breaches(self) -> list[Breach]:
        grants = self._grants()
        if len(grants) > MAX_GRANTS:
            return [Breach(("mcpServers",), Rule.TOO_MANY_GRANTS)]
        exposed = [(exposed_name(path[1], path[3]), Breach(path, Rule.EXPOSED_NAME_TWICE)) for path in grants]
        return repeats(exposed)

    def _pin_breaches(self) -> list[Breach]:
        packages = [one.name for one in self.extensions]
        return repeats(
            [(name, Breach(("extensions", index), Rule.PACKAGE_TWICE)) for index, name in enumerate(packages)]
        )

    def _grants(self) -> dict[tuple[str, str, str, str], Grant]:
        return {
            ("mcpServers", server, "tools", tool): grant
            for server, granted in self.mcp_servers.items()
            for tool, grant in granted.tools.items()
        }


class Limits(Strict):
    """Limits of one server process."""

    max_sessions: Annotated[
        int,
        only(Rule.MAX_SESSIONS, lambda sessions: 1 <= sessions <= 256),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 256}),
    ] = DEFAULT_MAX_SESSIONS


class RuntimeSection(Strict):
    """Programs that replace the installed runtime."""

    node: OptionalAbsolutePath = Field(default_factory=lambda: None, description="Path of the Node program.")
    sdk: OptionalAbsolutePath = Field(default_factory=lambda: None, description="Directory of the Pi SDK's package.")


class Document(Strict):
    """The configuration of pi-session-mcp."""

    model_config = ConfigDict(title="pi-session-mcp configuration")

    editor_schema: Any = Field(default_factory=lambda: None, alias="$schema", description="Ignored; for editors.")
    workspaces: Annotated[
        Mapping[Alias, PathText],
        ENTRY_BY_ENTRY,
        SEALED,
        Field(description="Alias: directory, absolute or relative to this file's directory."),
    ]
    execution_profiles: Annotated[
        Mapping[Alias, ExecutionProfile],
        ENTRY_BY_ENTRY,
        sized(Mapping, Rule.NO_PROFILE, lambda size: size > 0),
        SEALED,
        Field(
            json_schema_extra={"minProperties": 1},
            description="Exactly one has default: true, and that one is read-only.",
        ),
    ]
    pi_agent_directory: OptionalPathText = Field(
        default_factory=lambda: None,
        description="Pi's agent directory, absolute or relative to this file's directory.",
    )
    runtime: RuntimeSection = Field(default_factory=RuntimeSection)
    limits: Limits = Field(default_factory=Limits)

    @model_validator(mode="after")
    def _has_one_default(self) -> Self:
        defaults = [alias for alias, profile in self.execution_profiles.items() if profile.default]
        if not defaults:
            raise broken(Breach(("executionProfiles",), Rule.NO_DEFAULT))
        if again := [Breach(("executionProfiles", alias, "default"), Rule.SECOND_DEFAULT) for alias in defaults[1:]]:
            raise broken(*again)
        return self


@dataclass(frozen=True, slots=True)
class RuntimeOverride:
    """The operator's own Node program and Pi SDK package directory, absolute. `None` when it is not replaced."""

    node: Path | None = None
    sdk: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A whole valid configuration. It does not change while the process lives.

    Paths are absolute. Relative paths were joined to the file's directory as text: links are not followed, and nothing
    needs to exist. `fingerprint` is `sha256:<64 hex>` of the exact bytes of the file.
    """

    workspaces: Mapping[str, Path]
    execution_profiles: Mapping[str, ExecutionProfile]
    max_sessions: int
    pi_agent_directory: Path | None
    runtime: RuntimeOverride
    fingerprint: str

    @property
    def default_profile(self) -> str:
        """The alias of the execution profile for clients that name none."""
        return next(alias for alias, profile in self.execution_profiles.items() if profile.default)
