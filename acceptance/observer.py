"""What a client has really registered, read from its own file: a second opinion that no adapter had a hand in."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from acceptance.errors import HarnessError
from acceptance.processes import run
from pi_session_mcp.setup.targets import ALIAS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from acceptance.homes import Home
    from acceptance.programs import Program
    from pi_session_mcp.setup.targets import Target

UNRELATED: Final = "unrelated"
"""Somebody else's registration in each home. It holds a secret and must survive everything."""
_WITHIN_S: Final = 180
_HEALTH: Final = re.compile(r"^  (?:Status|Issue): .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Observer:
    """One target of one client in one home."""

    home: Home
    program: Program
    target: Target

    def register_unrelated(self) -> None:
        """Have the client itself register somebody else's server in the target's scope. Raises `HarnessError`."""
        secret = f"TOKEN={self.home.environ['ACCEPTANCE_SECRET']}"
        command = ("/bin/cat", "unrelated")
        words: tuple[str, ...] = (UNRELATED, "--env", secret, "--", *command)
        if self.target.client == "claude-code":
            words = ("--scope", self.target.scope, "-e", secret, "--", UNRELATED, *command)
        if self._ask("add", *words)[0] != 0 or UNRELATED not in self.registrations():
            raise HarnessError(f"{self.program.word} did not register a server")

    def unrelated(self) -> object:
        """Everything that tells of the other registration: the file's entry and the client's own words."""
        words = () if self.target.client == "claude-code" else ("--json",)
        status, told = self._ask("get", UNRELATED, *words)
        return self.registrations().get(UNRELATED), status, _HEALTH.sub("", told)

    def rest(self) -> object:
        """The whole client file without our entry, by meaning, and whether it is a link. Claude Code notes its own
        doings in its file, so of that only the registrations are told.
        """
        file = self._file()
        others = {name: entry for name, entry in self.registrations().items() if name != ALIAS}
        if file.name == ".claude.json":
            return file.is_symlink(), others
        document = {key: value for key, value in self._document().items() if key not in {"mcpServers", "mcp_servers"}}
        return file.is_symlink(), others, document

    def last_written(self) -> object:
        """What changes when the client writes its file; of Claude Code's, which it writes at each start, less."""
        file = self._file()
        return self.registrations() if file.name == ".claude.json" else (file.stat().st_mtime_ns, file.read_bytes())

    def ours(self) -> Mapping[str, Any] | None:
        """Our entry in the client's file."""
        return self.registrations().get(ALIAS)

    def client_knows_us(self) -> bool:
        """Whether the client itself shows our registration."""
        return self._ask("get", ALIAS)[0] == 0

    def registrations(self) -> Mapping[str, Any]:
        """Every entry of the target's scope in the client's file."""
        document = self._document()
        if self.target.client == "codex":
            return _object(document.get("mcp_servers"))
        if self.target.scope == "local":
            document = _object(_object(document.get("projects")).get(str(self.home.project)))
        return _object(document.get("mcpServers"))

    def _document(self) -> dict[str, Any]:
        file = self._file()
        if not file.exists():
            return {}
        text = file.read_text("utf-8")
        return tomllib.loads(text) if file.suffix == ".toml" else _object(json.loads(text))

    def _file(self) -> Path:
        environ, home = self.home.environ, self.home.directory
        match self.target.client, self.target.scope:
            case "claude-code", "project":
                return self.home.project / ".mcp.json"
            case "claude-code", _:
                return Path(environ.get("CLAUDE_CONFIG_DIR", home)) / ".claude.json"
            case "codex", _:
                return Path(environ.get("CODEX_HOME", home / ".codex")) / "config.toml"
            case _:
                return Path(environ.get("COPILOT_HOME", home / ".copilot")) / "mcp-config.json"

    def _ask(self, verb: str, *words: str) -> tuple[int, str]:
        environ = {**self.home.environ, "NO_COLOR": "1", "MCP_TIMEOUT": "1"}
        program = str(self.program.directory / self.program.word)
        done = run((program, "mcp", verb, *words), self.home.project, environ, within_s=_WITHIN_S)
        return done.status, done.stdout


def real_files(environ: Mapping[str, str]) -> Mapping[str, bytes | None]:
    """The bytes of the operator's real client files, by what they are; None where there is none."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    files = {
        "claude-code": Path(environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json",
        "codex": Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml",
        "copilot": Path(environ.get("COPILOT_HOME") or home / ".copilot") / "mcp-config.json",
    }
    return {name: file.read_bytes() if file.is_file() else None for name, file in files.items()}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
