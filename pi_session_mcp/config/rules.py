"""Every rule that a configuration can break, as one table of fixed sentences. Pure.

An operator is told the sentence and the place, and no value of the file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MAX_FILE_BYTES: Final = 1024 * 1024


class Rule(StrEnum):
    """A rule. Its value is the sentence that `ConfigError` shows. No two rules have the same sentence."""

    # where the file is
    VARIABLE_UNSET = "PI_SESSION_MCP_CONFIG must name the configuration file"
    VARIABLE_RELATIVE = "PI_SESSION_MCP_CONFIG must be an absolute path"
    FILE_ABSENT = "the configuration file must exist"
    FILE_UNREADABLE = "the configuration file must be a regular file that this user can read"

    # the text
    FILE_TOO_LARGE = "the configuration file must not be larger than 1 MiB"
    NOT_UTF8 = "must be UTF-8 text"
    NOT_JSON = "must be strict JSON, without comments, trailing commas, NaN or Infinity"
    TOO_DEEP = "must not be nested deeper than 32 levels"
    NUMBER_TOO_LONG = "a number must not be longer than 64 characters"
    LONE_SURROGATE = "text must not contain half of a surrogate pair"
    DUPLICATE_KEY = "a key must not appear twice in one object"

    # shapes
    OBJECT = "must be an object"
    LIST = "must be a list"
    REQUIRED = "is required"
    UNKNOWN_FIELD = "is not a known field"
    ALIAS = "an alias must be 1 to 64 of a-z, 0-9, _ and -, starting with a letter"

    # top level
    PATH = "must be a non-empty path without NUL"
    ABSOLUTE_PATH = "must be an absolute path without NUL"
    MAX_SESSIONS = "must be an integer from 1 to 256"

    # execution profiles
    NO_PROFILE = "must have at least one execution profile"
    NO_DEFAULT = "exactly one execution profile must have default: true, and none has"
    SECOND_DEFAULT = "exactly one execution profile must have default: true, and another has it already"
    DEFAULT_NOT_READ_ONLY = "the default execution profile must be read-only"
    TRUE_OR_FALSE = "must be true or false"
    PERMISSION_PROFILE = "must be one of read-only, coding"
    SELECTION = "must be text of 1 to 256 characters after trimming, none of them control or format characters"
    THINKING_LEVEL = "must be one of off, minimal, low, medium, high, xhigh, max"
    FILE_ACCESS = "must be one of workspace, user"
    CODING_FILE_ACCESS = "a coding profile must have fileAccess: user"

    # external MCP servers
    TOO_MANY_SERVERS = "must have at most 8 MCP servers"
    TOO_MANY_GRANTS = "must grant at most 64 MCP tools in all"
    SHORT_ALIAS = "an MCP server or tool alias must be 1 to 24 of a-z, 0-9, _ and -, starting with a letter"
    COMMAND = "must be an absolute path of 1 to 4096 characters without NUL"
    TOO_MANY_ARGUMENTS = "must have at most 128 arguments"
    ARGUMENT = "must be text of at most 4096 characters without NUL"
    TOO_MANY_VARIABLES = "must have at most 64 variables"
    CHILD_VARIABLE = "a variable of the MCP server must be 1 to 128 of A-Z, 0-9 and _, not starting with a digit"
    HOST_VARIABLE = "must be the name of a variable, 1 to 128 of A-Z, 0-9 and _, not starting with a digit"
    NO_GRANT = "must grant at least one tool"
    REMOTE_NAME = "must be text of 1 to 256 characters"
    REMOTE_NAME_TWICE = "a tool of an MCP server must not be granted twice"
    READ_ONLY_GRANT = "a read-only profile must not grant a tool with readOnly: false"
    EXPOSED_NAME_TWICE = "the exposed name mcp_<server>_<tool> must be unique in the profile"

    # extensions
    TOO_MANY_PINS = "must have at most 8 extensions"
    PIN = "must be npm:<name>@<exact version>, lowercase name, no range, tag or build metadata, at most 256 characters"
    PACKAGE_TWICE = "a package must not be pinned twice in one profile"
