"""The ids of the doctor's checks, and what one row of their table says. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pi_session_mcp.doctor.remedies import Remedy


class Severity(StrEnum):
    """How bad a finding is; `OK` means that what the id names was looked for and not found."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Id(StrEnum):
    """What is looked for. Part of the product's contract: never renamed."""

    PYTHON_VERSION_UNSUPPORTED = "python_version_unsupported"
    PLATFORM_UNSUPPORTED = "platform_unsupported"
    PACKAGE_METADATA_UNREADABLE = "package_metadata_unreadable"
    PACKAGE_MODIFIED = "package_modified"
    NODE_MISSING = "node_missing"
    NODE_VERSION_UNSUPPORTED = "node_version_unsupported"
    PI_RUNTIME_MISSING = "pi_runtime_missing"
    PI_VERSION_UNSUPPORTED = "pi_version_unsupported"
    PI_RUNTIME_BROKEN = "pi_runtime_broken"
    PI_AGENT_DIRECTORY_IGNORED = "pi_agent_directory_ignored"
    PI_CONFIGURATION_INVALID = "pi_configuration_invalid"
    PI_AGENT_DIRECTORY_NOT_WRITABLE = "pi_agent_directory_not_writable"
    PI_LOCK_PRESENT = "pi_lock_present"
    PROXY_INVALID = "proxy_invalid"
    VARIABLE_NOT_PASSED_ON = "variable_not_passed_on"
    CONFIG_MISSING = "config_missing"
    CONFIG_UNREADABLE = "config_unreadable"
    CONFIG_INVALID = "config_invalid"
    WORKSPACE_MISSING = "workspace_missing"
    WORKSPACE_NOT_DIRECTORY = "workspace_not_directory"
    WORKSPACE_PATH_NOT_UTF8 = "workspace_path_not_utf8"
    WORKSPACE_UNREADABLE = "workspace_unreadable"
    WORKSPACE_NOT_WRITABLE = "workspace_not_writable"
    WORKSPACE_CONTAINS_POLICY = "workspace_contains_policy"
    WORKSPACE_INSTRUCTIONS_LEFT_OUT = "workspace_instructions_left_out"
    PROFILE_PROVIDER_UNKNOWN = "profile_provider_unknown"
    PROFILE_MODEL_UNKNOWN = "profile_model_unknown"
    PROFILE_AUTHENTICATION_MISSING = "profile_authentication_missing"
    PROFILE_AUTHENTICATION_UNAVAILABLE = "profile_authentication_unavailable"
    PROFILE_MODEL_UNAVAILABLE = "profile_model_unavailable"
    PROFILE_THINKING_LEVEL_UNAVAILABLE = "profile_thinking_level_unavailable"
    SEARCH_TOOLS_MISSING = "search_tools_missing"
    TEMPORARY_DIRECTORY_UNUSABLE = "temporary_directory_unusable"
    STATE_DIRECTORY_UNSUPPORTED = "state_directory_unsupported"
    SETUP_PENDING = "setup_pending"
    EXTENSION_MISSING = "extension_missing"
    EXTENSION_VERSION_MISMATCH = "extension_version_mismatch"
    EXTENSION_IN_WORKSPACE = "extension_in_workspace"
    EXTENSION_BROKEN = "extension_broken"
    EXTENSION_FORM_UNSUPPORTED = "extension_form_unsupported"
    PACKAGE_WITHOUT_EXTENSION = "package_without_extension"
    EXTENSION_DEPENDENCY_MISSING = "extension_dependency_missing"
    EXTENSION_DEPENDENCY_OUTSIDE = "extension_dependency_outside"


ALIAS: Final = "workspace alias"
PIN: Final = "<profile>:<package>"
PROFILE: Final = "profile alias"
TARGET: Final = "target"
VARIABLE: Final = "name of a variable"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    `subject` is a fixed name, or says what a finding's own subject is (`ALIAS`, `PIN`, `TARGET`, `VARIABLE`). `fine`
    and `found` go on after the subject. `Remedy.UNCHECKED` belongs to every row.
    """

    id: Id
    severity: Severity
    subject: str
    fine: str
    found: str
    meaning: str
    remedies: tuple[Remedy, ...]
