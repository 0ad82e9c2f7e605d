"""A stand-in for `claude`, `codex` or `copilot`: `python -I -S stub_client_program.py CLIENT ARGUMENT…`.

It behaves like the recorded clients as far as their `mcp` commands are concerned, keeps its registrations in the same
files, and misbehaves on demand. What to do wrong is said by a JSON object in `$HOME/.stub/CLIENT.VERB` (the verbs are
`get`, `add`, `remove`, `help`, `version` and `app-server`), see `stub_client.py`. Each call is noted in
`$HOME/.stub/calls`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

TYPE_CHECKING = False  # importing `typing` would cost more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

SCOPES = {
    "user": "User config (available in all your projects)",
    "local": "Local config (private to you in this project)",
    "project": "Project config (shared via .mcp.json)",
}
PLACES = {"user": "user scope", "local": "local scope", "project": ".mcp.json"}
PENDING = "⏸ Pending approval (run `claude` to approve)"
GERMAN = {"Scope": "Bereich", "Status": "Zustand", "Command": "Befehl", "Environment": "Umgebung", "command": "befehl"}


class Answer:
    """What a call prints and how it ends; `change` writes the file, and is called once the call has got that far."""

    def __init__(
        self, stdout: str = "", stderr: str = "", code: int = 0, change: Callable[[], None] | None = None
    ) -> None:
        self.stdout, self.stderr, self.code, self.change = stdout, stderr, code, change


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def replace(path: str, text: str) -> None:
    """As the clients do it: a new file takes the place of the old one; a link stays one."""
    path = os.path.realpath(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


class JsonFile:
    """A client's file; what is in it besides ours stays."""

    def __init__(self, path: str, *keys: str) -> None:
        self.path, self.keys = path, keys

    def document(self) -> dict[str, Any]:
        text = read(self.path)
        found: dict[str, Any] = json.loads(text) if text else {}
        return found

    def servers(self, document: dict[str, Any]) -> dict[str, Any]:
        for key in self.keys:
            document = document.setdefault(key, {})
        return document

    def get(self, name: str) -> Any:
        return self.servers(self.document()).get(name)

    def names(self) -> list[str]:
        return list(self.servers(self.document()))

    def put(self, name: str, entry: dict[str, Any] | None) -> None:
        document = self.document()
        if entry is None:
            del self.servers(document)[name]
        else:
            self.servers(document)[name] = entry
        replace(self.path, json.dumps(document, indent=2) + "\n")


# --- claude ---------------------------------------------------------------------------------------------------------


def project_key(directory: str) -> str:
    """The top of the git repository, else the directory itself."""
    above = directory
    while above != "/":
        if os.path.isdir(os.path.join(above, ".git")):
            return above
        above = os.path.dirname(above)
    return directory


def claude_files() -> dict[str, JsonFile]:
    home, here = os.environ["HOME"], os.getcwd()
    settings = os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or home, ".claude.json")
    return {
        "local": JsonFile(settings, "projects", project_key(here), "mcpServers"),
        "user": JsonFile(settings, "mcpServers"),
        "project": JsonFile(os.path.join(here, ".mcp.json"), "mcpServers"),
    }


def claude(verb: str, arguments: list[str], behaviour: dict[str, Any]) -> Answer:
    if verb == "version":
        return Answer("2.1.332 (Claude Code)\n")
    if verb == "help":
        return Answer(
            "Usage: claude mcp [options] [command]\n\nCommands:\n  add [options] <name> <commandOrUrl> [args...]\n"
            "  get <name>                            Get details about an MCP server.\n"
            "  remove [options] <name>               Remove an MCP server\n"
        )
    files = claude_files()
    try:
        files["user"].document()
    except ValueError:
        path = files["user"].path
        return Answer(stderr=f"\nClaude configuration file at {path} is corrupted: JSON Parse error\n", code=1)
    verbs = {"get": claude_get, "add": claude_add, "add-json": claude_add_json, "remove": claude_remove}
    return verbs[verb](files, arguments, behaviour)


def claude_project_file_above(name: str) -> Any:
    above = os.path.dirname(os.getcwd())
    while above != "/":
        entry = project_entry(JsonFile(os.path.join(above, ".mcp.json"), "mcpServers"), name)
        if entry:
            return entry
        above = os.path.dirname(above)
    return None


def project_entry(file: JsonFile, name: str) -> Any:
    try:
        return file.get(name)
    except (ValueError, AttributeError):  # a broken .mcp.json is ignored
        return None


def approves_projects() -> bool:
    home = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.environ["HOME"], ".claude")
    return bool(json.loads(read(os.path.join(home, "settings.json")) or "{}").get("enableAllProjectMcpServers"))


def claude_get(files: dict[str, JsonFile], arguments: list[str], behaviour: dict[str, Any]) -> Answer:
    name = arguments[-1]
    if behaviour.get("fails_without_home") and not os.access(os.path.dirname(files["user"].path), os.W_OK | os.X_OK):
        return Answer(stderr="Error: ENOTDIR: not a directory\n", code=1)  # as 2.0 does
    found = [(scope, files[scope].get(name)) for scope in ("local", "user")]
    found.append(("project", project_entry(files["project"], name) or claude_project_file_above(name)))
    shown = [(scope, entry) for scope, entry in found if entry]
    if approves_projects():  # then the project's comes before the user's
        shown.sort(key=lambda one: ("local", "project", "user").index(one[0]))
    if not shown:
        others = [*files["local"].names(), *files["user"].names()]
        hint = f"Configured servers: {', '.join(others)}" if others else "Run `claude mcp add` to add one."
        return Answer(stderr=f'No MCP server named "{name}". {hint}\n', code=1)
    scope, entry = shown[0]
    status = [f"  Status: {PENDING}"] if scope == "project" else claude_health(name, entry, behaviour)
    lines = [
        *(f"{name}:", f"  Scope: {SCOPES[scope]}", *status, f"  Type: {entry['type']}"),
        *(f"  Command: {entry['command']}", f"  Args: {' '.join(entry['args'])}".rstrip(), "  Environment:"),
        *(f"    {key}={value}".rstrip() for key, value in entry["env"].items()),
        *([f"  Timeout: {entry['timeout']}ms"] if "timeout" in entry else []),
        *("", f"To remove this server, run: claude mcp remove {name} -s {scope}", ""),
    ]
    return Answer("\n".join(lines))


def claude_health(name: str, entry: dict[str, Any], behaviour: dict[str, Any]) -> list[str]:
    limit = os.environ.get("MCP_TIMEOUT", "30000")
    if behaviour.get("launches"):
        launch(entry, behaviour)
    if behaviour.get("connected") or int(limit) > 1:
        return ["  Status: ✔ Connected"]
    issue = f'MCP [redacted]r "{name}" connection timed out after {limit}ms'
    return ["  Status: ✘ Failed to connect", f"  Issue: {issue}"]


def launch(entry: dict[str, Any], behaviour: dict[str, Any]) -> None:
    """The health check: start what is registered, in our group, and end it, or leave it."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.execve(entry["command"], [entry["command"], *entry["args"]], {**os.environ, **entry["env"]})
    time.sleep(int(os.environ.get("MCP_TIMEOUT", "1")) / 1000)
    if not behaviour.get("leaves_server"):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def claude_add(files: dict[str, JsonFile], arguments: list[str], behaviour: dict[str, Any]) -> Answer:
    scope, rest = "local", list(arguments)
    environment: dict[str, str] = {}
    while rest and rest[0] != "--":
        option = rest.pop(0)
        if option == "--scope":
            scope = rest.pop(0)
        elif option == "-e":  # takes all that follows, as the real one does
            while rest and not rest[0].startswith("-"):
                word = rest.pop(0)
                key, equals, value = word.partition("=")
                if not equals:
                    return Answer(stderr=f"Invalid environment variable format: {word}\n", code=1)
                environment[key] = value
        else:
            rest = ["--", option, *rest]
    name, command, *words = rest[1:]
    if files[scope].get(name):
        where = ".mcp.json" if scope == "project" else f"{scope} config"
        return Answer(stderr=f"MCP server {name} already exists in {where}\n", code=1)
    entry = {"type": "stdio", "command": behaviour.get("writes_command", command), "args": words, "env": environment}
    shown = " ".join([command, " ".join(words)])
    head = f"Added stdio MCP server {name} with command: {shown} to {scope} config\n"
    return Answer(head + claude_modified(files, scope), change=lambda: files[scope].put(name, entry))


def claude_add_json(files: dict[str, JsonFile], arguments: list[str], _behaviour: dict[str, Any]) -> Answer:
    scope, (name, text) = arguments[arguments.index("--scope") + 1], arguments[-2:]
    if files[scope].get(name):
        return Answer(stderr=f"MCP server {name} already exists in {scope} config\n", code=1)
    entry = json.loads(text)
    return Answer(f"Added stdio MCP server {name} to {scope} config\n", change=lambda: files[scope].put(name, entry))


def claude_modified(files: dict[str, JsonFile], scope: str) -> str:
    suffix = f" [project: {files[scope].keys[1]}]" if scope == "local" else ""
    return f"File modified: {files[scope].path}{suffix}\n"


def claude_remove(files: dict[str, JsonFile], arguments: list[str], _behaviour: dict[str, Any]) -> Answer:
    name = arguments[-1]
    if "--scope" not in arguments:
        scopes = [scope for scope in files if files[scope].get(name)]
        if len(scopes) != 1:
            return Answer(stderr=f'MCP server "{name}" exists in multiple scopes:\n', code=1)
        scope = scopes[0]
    else:
        scope = arguments[arguments.index("--scope") + 1]
    if not files[scope].get(name):
        return Answer(stderr=f'No MCP server named "{name}" in {PLACES[scope]}\n', code=1)
    head = f"Removed MCP server {name} from {scope} config\n"
    return Answer(head + claude_modified(files, scope), change=lambda: files[scope].put(name, None))


# --- codex ----------------------------------------------------------------------------------------------------------


class TomlFile:
    """`config.toml`; only our own tables are rewritten."""

    def __init__(self, path: str) -> None:
        self.path = path

    def get(self, name: str) -> dict[str, Any] | None:
        import tomllib

        entry: dict[str, Any] | None = tomllib.loads(read(self.path)).get("mcp_servers", {}).get(name)
        return entry

    def put(self, name: str, entry: dict[str, Any] | None) -> None:
        kept, ours = [], False
        for line in read(self.path).splitlines(keepends=True):
            if line.startswith("["):
                ours = line.startswith((f"[mcp_servers.{name}]", f"[mcp_servers.{name}."))
            if not ours:
                kept.append(line)
        replace(self.path, "".join(kept) + ("" if entry is None else self.tables(name, entry)))

    def edit(self, edits: list[dict[str, Any]]) -> None:
        """Values of lines that are there; all else stays."""
        lines = read(self.path).splitlines(keepends=True)
        for edit in edits:
            _, name, *below, key = edit["keyPath"].split(".")
            table = ".".join(["mcp_servers", name, *below])
            at = lines.index(f"[{table}]\n")
            at += next(number for number, line in enumerate(lines[at:]) if line.startswith(f"{key} = "))
            lines[at] = f"{key} = {json.dumps(edit['value'], ensure_ascii=False)}\n"
        replace(self.path, "".join(lines))

    @staticmethod
    def tables(name: str, entry: dict[str, Any]) -> str:
        def quote(value: object) -> str:
            return json.dumps(value, ensure_ascii=False)

        text = f"[mcp_servers.{name}]\ncommand = {quote(entry['command'])}\nargs = {quote(entry['args'])}\n"
        if entry["env"]:
            text += f"\n[mcp_servers.{name}.env]\n"
            text += "".join(f"{key} = {quote(value)}\n" for key, value in entry["env"].items())
        return text


def codex(verb: str, arguments: list[str], behaviour: dict[str, Any]) -> Answer:
    if verb == "version":
        return Answer("codex-cli 0.171.0\n")
    if verb == "help":
        return Answer(
            "Usage: codex mcp [OPTIONS] <COMMAND>\n\nCommands:\n  list    \n  get     \n  add     \n  remove  \n"
        )
    home = os.environ.get("CODEX_HOME") or os.path.join(os.environ["HOME"], ".codex")
    if os.environ.get("CODEX_HOME") and not os.path.isdir(home):
        return Answer(stderr="Error: failed to resolve CODEX_HOME\n", code=1)
    file = TomlFile(os.path.join(home, "config.toml"))
    if verb == "app-server":
        return codex_app_server(file)
    name = arguments[0]
    try:
        entry = file.get(name)
    except ValueError:
        return Answer(stderr="Error: failed to load bootstrap configuration\n", code=1)
    if verb == "get":
        return codex_get(name, entry)
    if verb == "remove":
        if entry is None:
            return Answer(f"No MCP server named '{name}' found.\n")
        return Answer(f"Removed global MCP server '{name}'.\n", change=lambda: file.put(name, None))
    new = named_server(arguments[1:], behaviour)
    return Answer(f"Added global MCP server '{name}'.\n", change=lambda: file.put(name, new))


def codex_get(name: str, entry: dict[str, Any] | None) -> Answer:
    if entry is None:
        return Answer(stderr=f"Error: No MCP server named '{name}' found.\n", code=1)
    transport = {
        "type": "stdio",
        "command": entry["command"],
        "args": entry.get("args", []),
        "env": entry.get("env"),
        "env_vars": entry.get("env_vars", []),
        "cwd": entry.get("cwd"),
    }
    shown = {"name": name, "enabled": entry.get("enabled", True), "disabled_reason": None, "transport": transport}
    for field in ("enabled_tools", "disabled_tools", "startup_timeout_sec", "tool_timeout_sec"):
        shown[field] = entry.get(field)
    return Answer(json.dumps(shown, indent=2, ensure_ascii=False) + "\n")


def codex_app_server(file: TomlFile) -> Answer:
    """As far as a change of the configuration is concerned: an input that ends before the answer ends all."""
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "config/batchWrite":
            answer, edits = json.dumps({"id": asked["id"], "result": {"status": "ok"}}), asked["params"]["edits"]
            return Answer(f"{answer}\n", change=lambda: file.edit(edits))  # noqa: B023 - the loop ends here
        sys.stdout.write(json.dumps({"id": asked.get("id"), "result": {}}) + "\n")
        sys.stdout.flush()
    return Answer()


def named_server(arguments: list[str], behaviour: dict[str, Any]) -> dict[str, Any]:
    """`--env K=V -- COMMAND ARGUMENT…`, of codex and copilot."""
    split = arguments.index("--")
    options = list(zip(arguments[0:split:2], arguments[1:split:2]))  # noqa: B905 - there are as many values as options
    environment = dict(value.split("=", 1) for option, value in options if option == "--env")
    command, *words = arguments[split + 1 :]
    entry = {"command": behaviour.get("writes_command", command), "args": words, "env": environment}
    if "--timeout" in dict(options):
        entry["timeout"] = int(dict(options)["--timeout"])
    return {**entry, "tools": dict(options).get("--tools", "*").split(",")}


# --- copilot --------------------------------------------------------------------------------------------------------


def copilot(verb: str, arguments: list[str], behaviour: dict[str, Any]) -> Answer:
    if verb == "version":
        return Answer("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n")
    if verb == "help":
        return Answer("Usage: copilot mcp <COMMAND>\n\nCommands:\n  get      Show\n  add      Add\n  remove   Remove\n")
    home = os.environ.get("COPILOT_HOME") or os.path.join(os.environ["HOME"], ".copilot")
    file, name = JsonFile(os.path.join(home, "mcp-config.json"), "mcpServers"), arguments[0]
    try:
        entry = file.get(name)
    except ValueError:
        return Answer(stderr="Error: Failed to load MCP configuration\n", code=1)
    if verb == "add":
        if entry is not None:
            return Answer(stderr=f'Error: Server "{name}" already exists.\n', code=1)
        entry = named_server(arguments[1:], behaviour)
        new = {"tools": entry.pop("tools"), "type": "local", **entry}
        return Answer(copilot_added(name, new), change=lambda: file.put(name, new))
    if entry is None:
        known = "\n\nAvailable servers:\n  " + (", ".join(file.names()) or "(none)") if verb == "get" else ""
        return Answer(stderr=f'Error: Server "{name}" not found.{known}\n', code=1)
    if verb == "remove":
        return Answer(f'Removed server "{name}"\n', change=lambda: file.put(name, None))
    return Answer(json.dumps({name: {**entry, "source": "user", "enabled": True}}, indent=2, ensure_ascii=False) + "\n")


def copilot_added(name: str, new: dict[str, Any]) -> str:
    environment = "".join(f"    {key}: ***\n" for key in new["env"])
    command = " ".join([new["command"], *new["args"]])
    head = f'Added server "{name}"\n\n{name}\n  Type: local\n  Command: {command}\n'
    return f"{head}  Environment:\n{environment}  Tools: * (all)\n  Source: User\n"


# --- misbehaving ----------------------------------------------------------------------------------------------------


def behaviour_of(client: str, verb: str) -> dict[str, Any]:
    text = read(os.path.join(os.environ["HOME"], ".stub", f"{client}.{verb}"))
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def note_call(client: str, arguments: list[str]) -> None:
    directory = os.path.join(os.environ["HOME"], ".stub")
    os.makedirs(directory, exist_ok=True)
    settings = {name: os.environ[name] for name in ("NO_COLOR", "MCP_TIMEOUT") if name in os.environ}
    call = {"client": client, "arguments": arguments, "directory": os.getcwd(), "pid": os.getpid(), **settings}
    descriptor = os.open(os.path.join(directory, "calls"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (json.dumps(call) + "\n").encode())
    os.close(descriptor)


def hold(where: str) -> None:
    """Say where we are, and stay there until somebody makes the file that lets us go, or kills us."""
    directory = os.path.join(os.environ["HOME"], ".stub")
    replace(os.path.join(directory, f"held.{where}"), str(os.getpid()))
    while not os.path.exists(os.path.join(directory, "release")):
        time.sleep(0.005)


def linger(behaviour: dict[str, Any]) -> None:
    """Leave a descendant that outlives us: in our group, in a session of its own, or twice removed from us."""
    kind = behaviour["leaves"]
    if os.fork() != 0:
        return
    if kind in {"session", "daemon"}:
        os.setsid()
    if kind == "daemon" and os.fork() != 0:
        os._exit(0)
    if not behaviour.get("descendant_takes_term", False):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if behaviour.get("closes_descriptors", False):
        os.closerange(3, 4096)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    replace(os.path.join(os.environ["HOME"], ".stub", "left"), str(os.getpid()))
    time.sleep(behaviour.get("lingers_s", 600))
    os._exit(0)


def disguise(text: str, behaviour: dict[str, Any]) -> str:
    if behaviour.get("language"):
        for english, german in GERMAN.items():
            text = text.replace(english, german)
    if behaviour.get("colours"):
        text = "".join(f"\033[1m{line}\033[0m\n" for line in text.splitlines())
    if behaviour.get("line_ends"):
        text = text.replace("\n", str(behaviour["line_ends"]))
    text = f"{behaviour.get('chatter', '')}{text}{behaviour.get('trailer', '')}"
    missing = int(behaviour.get("kib", 0)) * 1024 - len(text.encode())
    return text + "x" * max(0, missing)


def say(answer: Answer, behaviour: dict[str, Any]) -> None:
    stdout = behaviour.get("stdout", disguise(answer.stdout, behaviour))
    stderr = behaviour.get("stderr", behaviour.get("chatter_stderr", "") + answer.stderr)
    sys.stdout.buffer.write(stdout.encode())
    sys.stderr.buffer.write(stderr.encode())
    sys.stdout.flush()
    sys.stderr.flush()
    while behaviour.get("forever"):
        sys.stdout.buffer.write(b"and so on\n" * 100)


def verb_of(arguments: list[str]) -> str:
    if arguments[:1] == ["--version"]:
        return "version"
    if arguments[:1] == ["app-server"]:
        return "app-server"
    return "help" if arguments[1:2] in ([], ["--help"]) else arguments[1]


def main() -> NoReturn:
    client, arguments = sys.argv[1], sys.argv[2:]
    verb = verb_of(arguments)
    behaviour = behaviour_of(client, verb)
    note_call(client, arguments)
    if behaviour.get("ignores_term"):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    if "leaves" in behaviour:
        linger(behaviour)
    if behaviour.get("stops_guardian"):
        os.kill(os.getppid(), signal.SIGSTOP)
        replace(os.path.join(os.environ["HOME"], ".stub", "stopped"), str(os.getppid()))
    answer = {"claude": claude, "codex": codex, "copilot": copilot}[client](verb, arguments[2:], behaviour)
    time.sleep(behaviour.get("slow_s", 0))
    if behaviour.get("hold_before"):
        hold("before")
    if answer.change and not behaviour.get("writes_nothing"):
        answer.change()
    if behaviour.get("hold_after"):
        hold("after")
    say(answer, behaviour)
    sys.exit(behaviour.get("exit", answer.code))


if __name__ == "__main__":
    main()
