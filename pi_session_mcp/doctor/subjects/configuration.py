"""The operator's configuration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.subject import OK, Check, Subject, Unseen, error, found, up_to
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.config.place import Place
    from pi_session_mcp.doctor.installation import Installation

NAME_CONFIGURATION: Final = (
    "Write a configuration with `pi-session-mcp config init`, "
    "or set PI_SESSION_MCP_CONFIG to the absolute path of one that you have."
)
WRITE_CONFIGURATION: Final = (
    "Write the configuration where it is looked for, by hand or with `pi-session-mcp config init`, "
    "or correct PI_SESSION_MCP_CONFIG."
)
CONFIG_MISSING: Final = error(
    "config_missing",
    "configuration",
    "there",
    "missing",
    "`PI_SESSION_MCP_CONFIG` names a file that does not exist, or it is not set and nothing is at "
    "[the default place](configuration.md#where-the-file-is).",
    NAME_CONFIGURATION,
    WRITE_CONFIGURATION,
)
CONFIG_UNREADABLE: Final = error(
    "config_unreadable",
    "configuration",
    "readable",
    "not readable",
    "The configuration is not a regular file, or this user may not read it.",
    "Make the configuration a regular file that you can read.",
)
CONFIG_INVALID: Final = error(
    "config_invalid",
    "configuration",
    "valid",
    "not valid",
    "The configuration breaks a rule. `pointer` (or `line` and `column`, where the text is not JSON) says where, "
    "and `rule` says which; see [the rules](configuration.md).",
    "Correct the configuration at that place; `pi-session-mcp config check` checks it again.",
)
ROWS: Final = (CONFIG_MISSING, CONFIG_UNREADABLE, CONFIG_INVALID)
UNNAMED: Final = "unnamed"


@dataclass(frozen=True, slots=True)
class Read:
    """What reading it gave. There is no place when no file is named and none is at the default place."""

    place: Place | None = None
    configuration: Configuration | None = None
    refused: ConfigError | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """`OK`, `UNNAMED`, or the code of a refusal with its place and its rule. No value of the file."""

    code: str
    place: Mapping[str, str | int] = field(default_factory=dict)


def read_configuration(here: Installation) -> Read:
    """The configuration that an operator's command would read."""
    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.config.load import load
    from pi_session_mcp.config.place import place_to_read

    place = place_to_read(here.environ.get(VARIABLE, ""), here.environ, here.cwd)
    if place is None:
        return Read()
    try:
        return Read(place, load(place.path))
    except ConfigError as refused:
        return Read(place, refused=refused)


def _look(here: Installation) -> Status | Unseen:
    read = here.read
    if isinstance(read, Unseen):
        return read
    if read.refused is None:
        return Status(UNNAMED if read.place is None else OK)
    place = read.refused.to_report()
    return Status(str(place.pop("code")), place)


def _verdict(seen: Status) -> Iterator[Check]:
    """Any refusal that is not about the file itself is a broken rule, at a place in the file."""
    match seen.code:
        case code if code == OK:
            yield from up_to(ROWS)
        case code if code == UNNAMED:
            yield found(CONFIG_MISSING, NAME_CONFIGURATION)
        case CONFIG_MISSING.id:
            yield found(CONFIG_MISSING, WRITE_CONFIGURATION)
        case CONFIG_UNREADABLE.id:
            yield from up_to(ROWS, seen.code)
        case _:
            *before, invalid = up_to(ROWS, CONFIG_INVALID.id)
            yield from (*before, replace(invalid, place=seen.place))


SUBJECT: Final = Subject(ROWS, _look, _verdict, unseen=CONFIG_UNREADABLE)
