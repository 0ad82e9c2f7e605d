"""Every check in one table: its id, its severity, the words for people, and what to do about it. Pure.

The report, the text for people, `docs/doctor.md` and the JSON Schema are all made from it.
"""

from __future__ import annotations

from typing import Final

from pi_session_mcp.doctor.ids import ALIAS, PIN, PROFILE, TARGET, VARIABLE, Id, Row, Severity
from pi_session_mcp.doctor.pi_rows import PI_FILE_ROWS, PROFILE_ROWS
from pi_session_mcp.doctor.remedies import Note, Remedy

__all__ = [
    "ALIAS",
    "ORDER",
    "PIN",
    "PROFILE",
    "ROWS",
    "TABLE",
    "TARGET",
    "VARIABLE",
    "Id",
    "Note",
    "Remedy",
    "Row",
    "Severity",
]

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
        "A file of this package is missing or differs from what was installed. What installers write themselves, such "
        "as the program in `bin`, is not compared, and neither are editable installs.",
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
    *PI_FILE_ROWS,
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
        Id.WORKSPACE_INSTRUCTIONS_LEFT_OUT,
        _WARNING,
        ALIAS,
        "has no unusable instructions",
        "has instructions that are left out",
        "A file of instructions (`AGENTS.md` and the like) of this workspace, or of a directory above it, is there and "
        "is [not given to the model](host-protocol.md#what-a-session-can-reach): it is no regular file, is larger than "
        "1 MiB, is a link that leads outside or nowhere, or cannot be read; or, above the workspace, it belongs to "
        "somebody else. Sessions start without it.",
        (Remedy.INSTRUCTIONS,),
    ),
    *PROFILE_ROWS,
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
