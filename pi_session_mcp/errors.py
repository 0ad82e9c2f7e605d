"""Stable codes, their fixed messages, and exit statuses.

This module imports nothing of ours. A code is part of the product's contract: clients and scripts match on it, so a
code is never renamed and its message never carries a value of the operator's, a path, or a foreign text.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final


class Code(StrEnum):
    """Every refusal that a tool call can be answered with."""

    INVALID_ARGUMENTS = "invalid_arguments"
    UNKNOWN_WORKSPACE = "unknown_workspace"
    UNKNOWN_EXECUTION_PROFILE = "unknown_execution_profile"
    UNKNOWN_SESSION = "unknown_session"
    UNKNOWN_TURN = "unknown_turn"
    SESSION_RUNNING = "session_running"
    SESSION_LIMIT_REACHED = "session_limit_reached"
    PROMPT_REJECTED = "prompt_rejected"
    PROMPT_TIMEOUT = "prompt_timeout"
    ABORT_FAILED = "abort_failed"
    ABORT_TIMEOUT = "abort_timeout"
    WORKSPACE_UNAVAILABLE = "workspace_unavailable"
    UNKNOWN_PROVIDER = "unknown_provider"
    UNKNOWN_MODEL = "unknown_model"
    LOCAL_AUTHENTICATION_MISSING = "local_authentication_missing"
    LOCAL_AUTHENTICATION_UNAVAILABLE = "local_authentication_unavailable"
    MODEL_UNAVAILABLE = "model_unavailable"
    THINKING_LEVEL_UNAVAILABLE = "thinking_level_unavailable"
    EXECUTION_SELECTION_MISMATCH = "execution_selection_mismatch"
    EXTERNAL_MCP_UNAVAILABLE = "external_mcp_unavailable"
    EXTERNAL_MCP_NO_TOOLS = "external_mcp_no_tools"
    EXTERNAL_MCP_GRANT_TOOL_MISSING = "external_mcp_grant_tool_missing"
    EXTERNAL_MCP_ACTIVATION_MISMATCH = "external_mcp_activation_mismatch"
    EXTENSION_NOT_INSTALLED = "extension_not_installed"
    EXTENSION_VERSION_MISMATCH = "extension_version_mismatch"
    EXTENSION_LOAD_FAILED = "extension_load_failed"
    EXTENSION_TOOL_CONFLICT = "extension_tool_conflict"
    PI_RUNTIME_UNAVAILABLE = "pi_runtime_unavailable"
    PI_CONFIGURATION_INVALID = "pi_configuration_invalid"
    PROXY_INVALID = "proxy_invalid"
    PI_SESSION_CREATION_FAILED = "pi_session_creation_failed"
    SERVER_STOPPING = "server_stopping"
    INTERNAL_ERROR = "internal_error"


MESSAGES: Final[dict[Code, str]] = {
    Code.INVALID_ARGUMENTS: "Invalid arguments",
    Code.UNKNOWN_WORKSPACE: "Unknown workspace",
    Code.UNKNOWN_EXECUTION_PROFILE: "Unknown execution profile",
    Code.UNKNOWN_SESSION: "Unknown session (sessions end with the server process)",
    Code.UNKNOWN_TURN: "Unknown turn",
    Code.SESSION_RUNNING: "Session already has a running turn",
    Code.SESSION_LIMIT_REACHED: "Session limit reached",
    Code.PROMPT_REJECTED: "Pi rejected the prompt during preflight",
    Code.PROMPT_TIMEOUT: "Pi prompt preflight timed out",
    Code.ABORT_FAILED: "Pi abort failed",
    Code.ABORT_TIMEOUT: "Pi abort timed out",
    Code.WORKSPACE_UNAVAILABLE: "Workspace is unavailable",
    Code.UNKNOWN_PROVIDER: "Unknown provider",
    Code.UNKNOWN_MODEL: "Unknown model",
    Code.LOCAL_AUTHENTICATION_MISSING: "Local Pi authentication is missing",
    Code.LOCAL_AUTHENTICATION_UNAVAILABLE: "Local Pi authentication is unavailable",
    Code.MODEL_UNAVAILABLE: "Model is not available",
    Code.THINKING_LEVEL_UNAVAILABLE: "Thinking level is not available",
    Code.EXECUTION_SELECTION_MISMATCH: "Session does not match the configured selection",
    Code.EXTERNAL_MCP_UNAVAILABLE: "External MCP server is unavailable",
    Code.EXTERNAL_MCP_NO_TOOLS: "External MCP server offers no tools",
    Code.EXTERNAL_MCP_GRANT_TOOL_MISSING: "Granted external MCP tool is missing",
    Code.EXTERNAL_MCP_ACTIVATION_MISMATCH: "External MCP tools were not activated",
    Code.EXTENSION_NOT_INSTALLED: "Configured Pi extension is not installed",
    Code.EXTENSION_VERSION_MISMATCH: "Configured Pi extension version is not installed",
    Code.EXTENSION_LOAD_FAILED: "Configured Pi extension could not be loaded",
    Code.EXTENSION_TOOL_CONFLICT: "Configured Pi extension tools conflict",
    Code.PI_RUNTIME_UNAVAILABLE: "Pi runtime is unavailable",
    Code.PI_CONFIGURATION_INVALID: "Pi configuration is invalid",
    Code.PROXY_INVALID: "Proxy address in the environment is invalid",
    Code.PI_SESSION_CREATION_FAILED: "Pi session could not be created",
    Code.SERVER_STOPPING: "Server is shutting down",
    Code.INTERNAL_ERROR: "Operation failed",
}


class ConfigCode(StrEnum):
    """Every way in which the operator's configuration can be refused."""

    PATH_REQUIRED = "config_path_required"
    MISSING = "config_missing"
    UNREADABLE = "config_unreadable"
    INVALID = "config_invalid"
    INVALID_EXECUTION_PROFILE = "invalid_execution_profile_config"
    INVALID_THINKING_LEVEL = "invalid_thinking_level"


class Stage(StrEnum):
    """The step of a session's creation at which it failed (for diagnostics only)."""

    WORKSPACE = "workspace"
    RUNTIME = "runtime"
    PROVIDER = "provider"
    MODEL = "model"
    CHECK_AUTH = "check_auth"
    GET_AUTH = "get_auth"
    AVAILABILITY = "availability"
    RESOURCE_LOADER = "resource_loader"
    MCP_TOOLS = "mcp_tools"
    CREATE_SESSION = "create_session"
    POSTCHECK = "postcheck"
    EXTENSION_RESOLVE = "extension_resolve"
    EXTENSION_LOAD = "extension_load"
    EXTENSION_BIND = "extension_bind"


class ExitStatus(IntEnum):
    """Exit statuses of every command; 128 + n is an end by signal n."""

    OK = 0
    FAILURE = 1
    CHECK_FAILED = 2
    MISUSE = 64
    INTERRUPTED = 130
    TERMINATED = 143


class Refusal(Exception):  # noqa: N818 - a refusal is an expected answer, not an error of the program
    """An operation was refused with a stable code; nothing was lost.

    `stage` is set when creating a session failed. `extension` (`<name>@<version>`, as configured) is set when one
    pinned extension is known to be the cause. `server` and `tool` (aliases, as configured) are set when an external MCP
    server is the cause, with the number of tools that it offered. `reason` is one of our words and says more than the
    code does. None of these carries foreign text.
    """

    def __init__(
        self,
        code: Code,
        *,
        stage: Stage | None = None,
        extension: str | None = None,
        server: str | None = None,
        tool: str | None = None,
        discovered_tools: int | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(code.value)
        self.code = code
        self.stage = stage
        self.extension = extension
        self.server = server
        self.tool = tool
        self.discovered_tools = discovered_tools
        self.reason = reason

    @property
    def message(self) -> str:
        """The fixed message of the code."""
        return MESSAGES[self.code]


class HostGone(Exception):  # noqa: N818 - an event of the world, answered as pi_runtime_unavailable
    """The Pi host has ended, so a request to it has no answer."""
