"""Every check in one table: its id, its severity, the words for people, and what to do about it. Pure.

The report, the text for people, `docs/doctor.md` and the JSON Schema are all made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


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
    PI_AGENT_DIRECTORY_IGNORED = "pi_agent_directory_ignored"
    PI_CONFIGURATION_INVALID = "pi_configuration_invalid"
    CONFIG_MISSING = "config_missing"
    CONFIG_UNREADABLE = "config_unreadable"
    CONFIG_INVALID = "config_invalid"
    WORKSPACE_MISSING = "workspace_missing"
    WORKSPACE_NOT_DIRECTORY = "workspace_not_directory"
    WORKSPACE_PATH_NOT_UTF8 = "workspace_path_not_utf8"
    WORKSPACE_UNREADABLE = "workspace_unreadable"
    WORKSPACE_NOT_WRITABLE = "workspace_not_writable"
    WORKSPACE_CONTAINS_POLICY = "workspace_contains_policy"
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


class Remedy(StrEnum):
    """A fixed sentence that says what to do; followed to the letter it makes the finding go away."""

    UNCHECKED = "This could not be checked: reinstall pi-session-mcp, and report it as a defect if that does not help."
    SUPPORTED_PYTHON = "Install pi-session-mcp in an environment whose Python is 3.11 or newer."
    SUPPORTED_PLATFORM = "Use Linux or macOS; elsewhere nothing is tested and no client is registered."
    REINSTALL = "Reinstall pi-session-mcp with the installer that you used."
    NODE = (
        "Install pi-session-mcp with its extra `node`, or Node.js 22.19.0 or newer, "
        "then run `pi-session-mcp runtime install`."
    )
    NODE_VERSION = (
        "Use Node.js 22.19.0 or newer: install pi-session-mcp with its extra `node`, "
        "then run `pi-session-mcp runtime install`."
    )
    CONFIGURED_NODE = (
        "Name a program of Node.js 22.19.0 or newer as runtime.node in the configuration, "
        "or remove that entry and run `pi-session-mcp runtime install`."
    )
    RUNTIME = "Run `pi-session-mcp runtime install`."
    CONFIGURED_SDK = (
        "Name a whole Pi SDK from 1.5.2 to 1.6.x as runtime.sdk in the configuration, "
        "or remove that entry and run `pi-session-mcp runtime install`."
    )
    ABSOLUTE_VARIABLE = (
        "Set PI_CODING_AGENT_DIR to an absolute path, or unset it and name the directory as piAgentDirectory in the "
        "configuration."
    )
    VARIABLE_OUTSIDE = "Unset PI_CODING_AGENT_DIR, and name the directory as piAgentDirectory in the configuration."
    PI_FILES = (
        "Make models.json and auth.json in Pi's agent directory files that you can read, each one JSON object without "
        "comments and trailing commas; one that you do not need may be removed."
    )
    AGENT_DIRECTORY = "Set HOME, or piAgentDirectory in the configuration."
    NAME_CONFIGURATION = (
        "Write a configuration with `pi-session-mcp config init`, "
        "or set PI_SESSION_MCP_CONFIG to the absolute path of one that you have."
    )
    WRITE_CONFIGURATION = (
        "Write the configuration where it is looked for, by hand or with `pi-session-mcp config init`, "
        "or correct PI_SESSION_MCP_CONFIG."
    )
    READABLE_CONFIGURATION = "Make the configuration a regular file that you can read."
    VALID_CONFIGURATION = "Correct the configuration at that place; `pi-session-mcp config check` looks at it again."
    WORKSPACE = "Create the directory, or correct the workspace's path in the configuration."
    WORKSPACE_DIRECTORY = "Name a directory as the workspace's path in the configuration."
    UTF8_WORKSPACE = (
        "Give the workspace's directory, and those above it, names that are valid UTF-8, "
        "or name another directory in the configuration."
    )
    READABLE_WORKSPACE = (
        "Give yourself read and search permission for the workspace's directory and for those above it."
    )
    WRITABLE_WORKSPACE = "Give yourself write permission for the workspace's directory, or configure no coding profile."
    CONFIGURATION_OUTSIDE = "Move the configuration out of the workspace, or narrow the workspace."
    AGENT_DIRECTORY_OUTSIDE = (
        "Keep Pi's agent directory outside of the workspace (piAgentDirectory in the configuration), "
        "or narrow the workspace."
    )
    RUNTIME_OUTSIDE = (
        "Keep pi-session-mcp, Node.js and the Pi SDK that it uses outside of the workspace, or narrow the workspace."
    )
    STATE_OUTSIDE = "Keep the state directory (XDG_STATE_HOME) outside of the workspace, or narrow the workspace."
    SEARCH_TOOLS = (
        "Run `pi-session-mcp runtime install`, which brings ripgrep, or install ripgrep so that `rg` is on PATH."
    )
    TEMPORARY_DIRECTORY = (
        "Let TMPDIR (or TMP or TEMP, whichever is set first) name a directory that you can write in, "
        "by its absolute path and on a file system with room, or unset it."
    )
    HOME = "Set HOME to your home directory, as an absolute path."
    STATE_FILE_SYSTEM = "Keep the state directory on a local file system (XDG_STATE_HOME)."
    STATE_PERMISSIONS = (
        "Make the state directory (pi-session-mcp and setup in it), or the one that it would be made in, plain "
        "directories of your own that nobody else can write in; setup itself has mode 0700."
    )
    STATE_WRITABLE = (
        "Make it possible to write in the state directory, or name another directory of yours with XDG_STATE_HOME."
    )
    STATE_INSPECT = "Remove everything from inspect, setup's own directory in the state directory."
    STATE_MARK_MCP = "Move .mcp.json out of the root directory of this machine."
    STATE_MARK_GIT = "Move .git out of the root directory of this machine."
    STATE_MARK_CODEX = "Move .codex out of the root directory of this machine."
    STATE_RECORDS = (
        "Remove the registrations that you made with each client's own command, "
        "then setup's file ownership.json in the state directory."
    )
    PENDING = (
        "Run `pi-session-mcp setup --apply` with this target to finish what was begun, "
        "or `pi-session-mcp setup --remove` with it to undo that."
    )
    INSTALL_EXTENSION = "Install the pinned version with Pi: pi install npm:<name>@<version>."
    MATCH_EXTENSION = "Install the pinned version with Pi, or pin the version that is installed."
    EXTENSION_OUTSIDE = "Keep Pi's agent directory, and what its packages are linked to, outside of every workspace."
    WHOLE_EXTENSION = "Remove the package with Pi and install it again; if it stays broken, pin another version."
    SUPPORTED_FORM = (
        "Take the pin out of the profile, or pin a version that declares its extensions in a supported form."
    )
    EXTENSIONS_ONLY = (
        "Take the pin out of the profile: skills, prompt templates and themes of a package are not loaded."
    )
    DEPENDENCIES = "Remove the package with Pi and install it again, so that its dependencies are installed with it."
    COPIED_DEPENDENCIES = (
        "Remove the package with Pi and install it again, so that its dependencies are copies and not links."
    )


ALIAS: Final = "workspace alias"
PIN: Final = "<profile>:<package>"
TARGET: Final = "target"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    `subject` is a fixed name, or says what a finding's own subject is (`ALIAS`, `PIN`, `TARGET`). `fine` and `found`
    go on after the subject. `Remedy.UNCHECKED` belongs to every row.
    """

    id: Id
    severity: Severity
    subject: str
    fine: str
    found: str
    meaning: str
    remedies: tuple[Remedy, ...]


_WARNING: Final = Severity.WARNING
_ERROR: Final = Severity.ERROR

TABLE: Final = (
    Row(
        Id.PYTHON_VERSION_UNSUPPORTED,
        _ERROR,
        "Python",
        "supported version",
        "version is too old",
        "This program runs on an older Python than its package requires.",
        (Remedy.SUPPORTED_PYTHON,),
    ),
    Row(
        Id.PLATFORM_UNSUPPORTED,
        _WARNING,
        "platform",
        "supported",
        "not supported",
        "The operating system is neither Linux nor macOS. Registering with a client is refused here.",
        (Remedy.SUPPORTED_PLATFORM,),
    ),
    Row(
        Id.PACKAGE_METADATA_UNREADABLE,
        _ERROR,
        "package metadata",
        "readable",
        "missing or damaged",
        "What the installer wrote about this package (`METADATA`, `RECORD`) is not there, or is not what it should be.",
        (Remedy.REINSTALL,),
    ),
    Row(
        Id.PACKAGE_MODIFIED,
        _WARNING,
        "package files",
        "unchanged",
        "changed since the installation",
        "A file of this package is missing or differs from what was installed. Editable installs are not compared.",
        (Remedy.REINSTALL,),
    ),
    Row(
        Id.NODE_MISSING,
        _ERROR,
        "Node.js",
        "found",
        "not found",
        "No Node.js was found, or the one that decides cannot be run. "
        "[How it is found](runtime.md) is a fixed order, and the first that is there decides.",
        (Remedy.RUNTIME, Remedy.NODE, Remedy.CONFIGURED_NODE),
    ),
    Row(
        Id.NODE_VERSION_UNSUPPORTED,
        _ERROR,
        "Node.js",
        "supported version",
        "version is too old",
        "The Node.js that decides is older than the Pi SDK requires (22.19.0), or does not say a release.",
        (Remedy.RUNTIME, Remedy.NODE_VERSION, Remedy.CONFIGURED_NODE),
    ),
    Row(
        Id.PI_RUNTIME_MISSING,
        _ERROR,
        "Pi runtime",
        "found",
        "not found",
        "No Pi SDK was found, or the one that decides is not whole.",
        (Remedy.RUNTIME, Remedy.CONFIGURED_SDK),
    ),
    Row(
        Id.PI_VERSION_UNSUPPORTED,
        _ERROR,
        "Pi runtime",
        "tested version",
        "version is not a tested one",
        "The Pi SDK that decides is older or newer than the tested versions, 1.5.2 to 1.6.x.",
        (Remedy.RUNTIME, Remedy.CONFIGURED_SDK),
    ),
    Row(
        Id.PI_AGENT_DIRECTORY_IGNORED,
        _WARNING,
        "PI_CODING_AGENT_DIR",
        "not ignored",
        "ignored",
        "The variable is not an absolute path, or names a directory in the working directory or in a workspace. A "
        "project could have set it, so the usual `~/.pi/agent` is used, and what is said of Pi's files is about that. "
        "A server is started in its client's working directory, which may be another than this one.",
        (Remedy.ABSOLUTE_VARIABLE, Remedy.VARIABLE_OUTSIDE),
    ),
    Row(
        Id.PI_CONFIGURATION_INVALID,
        _ERROR,
        "Pi configuration",
        "readable",
        "not readable or not JSON",
        "`models.json` or `auth.json` in Pi's agent directory is there and cannot be read, or is not one JSON object. "
        "Pi would go on without it, perhaps at another endpoint than the one you meant. Comments and trailing commas "
        "count as well, although Pi forgives them in `models.json`. The files are parsed and never shown.",
        (Remedy.PI_FILES, Remedy.AGENT_DIRECTORY),
    ),
    Row(
        Id.CONFIG_MISSING,
        _ERROR,
        "configuration",
        "there",
        "missing",
        "`PI_SESSION_MCP_CONFIG` names a file that does not exist, or it is not set and nothing is at "
        "[the default place](configuration.md#where-the-file-is).",
        (Remedy.NAME_CONFIGURATION, Remedy.WRITE_CONFIGURATION),
    ),
    Row(
        Id.CONFIG_UNREADABLE,
        _ERROR,
        "configuration",
        "readable",
        "not readable",
        "The configuration is not a regular file, or this user may not read it.",
        (Remedy.READABLE_CONFIGURATION,),
    ),
    Row(
        Id.CONFIG_INVALID,
        _ERROR,
        "configuration",
        "valid",
        "not valid",
        "The configuration breaks a rule. `pointer` (or `line` and `column`, where the text is not JSON) says where, "
        "and `rule` says which; see [the rules](configuration.md).",
        (Remedy.VALID_CONFIGURATION,),
    ),
    Row(
        Id.WORKSPACE_MISSING,
        _ERROR,
        ALIAS,
        "there",
        "does not exist",
        "Nothing is at the workspace's path, or a link there leads nowhere.",
        (Remedy.WORKSPACE,),
    ),
    Row(
        Id.WORKSPACE_NOT_DIRECTORY,
        _ERROR,
        ALIAS,
        "a directory",
        "not a directory",
        "A file, or something else that is no directory, is at the workspace's path.",
        (Remedy.WORKSPACE_DIRECTORY,),
    ),
    Row(
        Id.WORKSPACE_PATH_NOT_UTF8,
        _ERROR,
        ALIAS,
        "named in UTF-8",
        "path is not UTF-8",
        "The name of the workspace's directory, or of one above it, is not valid UTF-8: Pi cannot be told of it.",
        (Remedy.UTF8_WORKSPACE,),
    ),
    Row(
        Id.WORKSPACE_UNREADABLE,
        _ERROR,
        ALIAS,
        "readable",
        "not readable",
        "This user may not list or enter the workspace's directory, or one above it.",
        (Remedy.READABLE_WORKSPACE,),
    ),
    Row(
        Id.WORKSPACE_NOT_WRITABLE,
        _ERROR,
        ALIAS,
        "writable as needed",
        "not writable",
        "A coding profile is configured, and this user may not write in the workspace's directory.",
        (Remedy.WRITABLE_WORKSPACE,),
    ),
    Row(
        Id.WORKSPACE_CONTAINS_POLICY,
        _WARNING,
        ALIAS,
        "holds no policy",
        "holds what decides about sessions",
        "A coding profile is configured, and the configuration, Pi's agent directory, the runtime or the state "
        "directory lies inside this workspace: a session could rewrite its own limits.",
        (
            Remedy.CONFIGURATION_OUTSIDE,
            Remedy.AGENT_DIRECTORY_OUTSIDE,
            Remedy.RUNTIME_OUTSIDE,
            Remedy.STATE_OUTSIDE,
        ),
    ),
    Row(
        Id.SEARCH_TOOLS_MISSING,
        _WARNING,
        "search tools",
        "found",
        "not found",
        "The program `rg` (ripgrep), which the model's tools `grep` and `find` need, is neither installed with the "
        "runtime nor on `PATH`. Sessions start, and these two tools fail.",
        (Remedy.SEARCH_TOOLS,),
    ),
    Row(
        Id.TEMPORARY_DIRECTORY_UNUSABLE,
        _WARNING,
        "temporary directory",
        "usable",
        "not usable",
        "The directory that `TMPDIR` names, or without it `TMP` or `TEMP`, or else `/tmp`, does not exist, is no "
        "directory, is not named by an absolute path, cannot be written in, or has no room. Sessions use `/tmp` or "
        "`/var/tmp` instead, where these are better; other programs may fail. A client may pass on another `TMPDIR` "
        "than this terminal has.",
        (Remedy.TEMPORARY_DIRECTORY,),
    ),
    Row(
        Id.STATE_DIRECTORY_UNSUPPORTED,
        _WARNING,
        "setup state",
        "can be kept",
        "cannot be kept",
        "The directory for the records of registrations would be on a file system without sure locks, is not yours, "
        "cannot be made or can be read or written by others, or the records in it are damaged; or a client's user "
        "scope could not be told from a project's. Sessions are not affected.",
        (
            Remedy.HOME,
            Remedy.STATE_FILE_SYSTEM,
            Remedy.STATE_PERMISSIONS,
            Remedy.STATE_WRITABLE,
            Remedy.STATE_INSPECT,
            Remedy.STATE_MARK_MCP,
            Remedy.STATE_MARK_GIT,
            Remedy.STATE_MARK_CODEX,
            Remedy.STATE_RECORDS,
        ),
    ),
    Row(
        Id.SETUP_PENDING,
        _WARNING,
        TARGET,
        "complete",
        "unfinished registration",
        "A registration was begun and has not been seen to end. The subject is the target (`client:scope`), or "
        "`setup state` when nothing is unfinished.",
        (Remedy.PENDING,),
    ),
    Row(
        Id.EXTENSION_MISSING,
        _ERROR,
        PIN,
        "installed",
        "not installed",
        "A profile pins an extension that is not installed in Pi's agent directory.",
        (Remedy.INSTALL_EXTENSION, Remedy.AGENT_DIRECTORY),
    ),
    Row(
        Id.EXTENSION_VERSION_MISMATCH,
        _ERROR,
        PIN,
        "version as pinned",
        "another version than the pinned one",
        "The installed extension has another version than the pin.",
        (Remedy.MATCH_EXTENSION,),
    ),
    Row(
        Id.EXTENSION_IN_WORKSPACE,
        _ERROR,
        PIN,
        "outside of the workspaces",
        "files lie in a workspace",
        "The package, or one that it depends on, really lies inside a workspace: a session could rewrite the code that "
        "the next session runs.",
        (Remedy.EXTENSION_OUTSIDE,),
    ),
    Row(
        Id.EXTENSION_BROKEN,
        _ERROR,
        PIN,
        "whole",
        "damaged",
        "The package's manifest cannot be read, is not JSON or names another package, or what `pi.extensions` lists is "
        "not there or cannot be read.",
        (Remedy.WHOLE_EXTENSION,),
    ),
    Row(
        Id.EXTENSION_FORM_UNSUPPORTED,
        _ERROR,
        PIN,
        "of a supported form",
        "of a form that is not supported",
        "The package declares its extensions in a way that this program does not load although Pi may: by a path that "
        "leads out of the package, by a pattern with classes, braces or parentheses, or in a folder with rules of what "
        "to ignore. [Which forms load](extensions.md#which-files-of-a-package-are-loaded).",
        (Remedy.SUPPORTED_FORM,),
    ),
    Row(
        Id.PACKAGE_WITHOUT_EXTENSION,
        _ERROR,
        PIN,
        "has an extension",
        "has no extension in it",
        "The package is installed as pinned and there is no extension in it, as in a package of skills only.",
        (Remedy.EXTENSIONS_ONLY,),
    ),
    Row(
        Id.EXTENSION_DEPENDENCY_MISSING,
        _WARNING,
        PIN,
        "dependencies found",
        "a dependency is missing",
        "Node would not find a package that the extension declares as a dependency, or that one of its dependencies "
        "does. A session is refused with `extension_load_failed` if the extension imports it while it loads.",
        (Remedy.DEPENDENCIES,),
    ),
    Row(
        Id.EXTENSION_DEPENDENCY_OUTSIDE,
        _WARNING,
        PIN,
        "dependencies beside it",
        "a dependency lies elsewhere",
        "The package is in Pi's agent directory, and one that it depends on is found outside of it: by a link, or in "
        "a `node_modules` further up. Sessions start with whatever is there.",
        (Remedy.COPIED_DEPENDENCIES,),
    ),
)

ROWS: Final = {row.id: row for row in TABLE}
ORDER: Final = {row.id: place for place, row in enumerate(TABLE)}
