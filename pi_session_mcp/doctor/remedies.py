"""What to do about what the doctor found, and what it says of what it could not look at. Pure."""

from __future__ import annotations

from enum import StrEnum


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
    PI_FILE_READABLE = "Make this file in Pi's agent directory a plain file that you can read, or remove it."
    PI_FILE_JSON = (
        "Make this file in Pi's agent directory one JSON object, without comments and trailing commas, or remove it."
    )
    PI_FILE_ENTRIES = (
        "Correct the entry of this file in Pi's agent directory that Pi refuses: `pi --list-models` names one of "
        "models.json, and the settings that count are in the documentation. Or remove the file."
    )
    WRITABLE_AGENT_DIRECTORY = (
        "Give yourself write permission for the directory of Pi's auth.json, the agent directory, since Pi reads no "
        "credential without a lock there; or name another place as piAgentDirectory in the configuration."
    )
    REMOVE_LOCK = "When no Pi is at work, remove auth.json.lock, which stands beside Pi's auth.json."
    PROXY = (
        "Give the variables http_proxy, https_proxy and all_proxy, in small letters and capitals, whole addresses "
        "such as http://127.0.0.1:8080, or unset them."
    )
    PROXY_SETTING = (
        "Name the proxy as httpProxy in settings.json of Pi's agent directory. Or name this variable in the list "
        "env_vars of [mcp_servers.pi-session-mcp] in Codex's config.toml."
    )
    PASS_VARIABLE = (
        "Name this variable in the list env_vars of [mcp_servers.pi-session-mcp] in Codex's config.toml, or unset it."
    )
    EXTRA_CERTIFICATES = (
        "Name the file with your certificates in NODE_EXTRA_CA_CERTS, which Codex passes on, instead of this variable."
    )
    INSTRUCTIONS = (
        "Make every AGENTS.override.md, AGENTS.md and CLAUDE.md of this workspace a readable file of at most 1 MiB, or "
        "a link to one inside the workspace, and every one in a directory above it a file of your own there; or remove "
        "it."
    )
    RUNTIME_AGAIN = (
        "Run `pi-session-mcp runtime install` again; or correct runtime.node and runtime.sdk in the configuration, "
        "if they are set."
    )
    AGENT_DIRECTORY = (
        "Set HOME, or piAgentDirectory in the configuration, to an absolute path whose names are valid UTF-8."
    )
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
    PROFILE_PROVIDER = (
        "Correct the profile's provider in the configuration, or define it in models.json in Pi's agent directory; "
        "`pi --list-models` lists what Pi knows."
    )
    PROFILE_MODEL = (
        "Correct the profile's model in the configuration, or define it in models.json in Pi's agent directory; "
        "`pi --list-models` lists what Pi knows."
    )
    LOG_IN = (
        "Start `pi` (npm package @earendil-works/pi-coding-agent) and log in to the profile's provider with /login, or "
        "give it an API key in auth.json or by its environment variable, which the client has to pass on."
    )
    LOG_IN_AGAIN = (
        "Correct the key of the profile's provider: set the variable that it names, or start `pi` and log in again "
        "with /login."
    )
    AVAILABLE_MODEL = "Name a model that your login to the provider may use; `pi --list-models` lists them."
    THINKING_LEVEL = (
        "Name a thinking level that the model has as the profile's thinkingLevel; off is one for every model without "
        "thinking."
    )


class Note(StrEnum):
    """What could not be looked at without doing something; a fixed sentence."""

    KEY_COMMAND = "Whether the key works was not looked at: a command has it, and the doctor runs none."
    RENEWAL = "Whether the login works was not looked at: it has to be renewed, and the doctor connects to nothing."
    EXTENSION = "No more was looked at: an extension may bring the rest, and the doctor runs none."
    NO_TIME = "Nothing was looked at: Pi did not answer in time."
