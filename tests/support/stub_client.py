"""Stub clients in a throw-away home: real programs that behave like the recorded ones, and misbehave on demand."""

from __future__ import annotations

import json
import os
import py_compile
import shlex
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM: Final = Path(__file__).with_name("stub_client_program.py")
CLIENTS: Final = ("claude", "codex", "copilot")
ClientName: TypeAlias = Literal["claude", "codex", "copilot"]
Verb: TypeAlias = Literal["get", "add", "remove", "help", "version", "app-server"]


@dataclass(frozen=True, slots=True)
class StubHome:
    """A home directory, the stub programs in front of the rest of `PATH`, and what they were called with."""

    home: Path
    programs: Path

    @property
    def environ(self) -> Mapping[str, str]:
        """All that a command needs to work in this home alone."""
        return {"HOME": str(self.home), "PATH": f"{self.programs}:/usr/bin:/bin"}

    def behave(self, client: ClientName, verb: Verb, **behaviour: Any) -> None:
        """Say how `client` does `verb` from now on; no behaviour means: properly. What there is:

        - `slow_s`: waits before it changes anything. `ignores_term`: TERM, INT and HUP do nothing.
        - `hold_before`, `hold_after`: stops before or after its change; then `.stub/held.before` (or `.after`) holds
          its process id. It goes on when `release()` is called.
        - `stops_guardian`: stops its parent; then `.stub/stopped` holds the parent's process id.
        - `leaves`: `child` (in its group), `session` (by setsid) or `daemon` (twice forked) stays behind for
          `lingers_s` (600), its id in `.stub/left`; it ignores TERM unless `descendant_takes_term`, and keeps every
          inherited descriptor open unless `closes_descriptors`.
        - `writes_nothing`: says that it worked. `writes_command`: registers this command instead.
        - `chatter`, `trailer`: before and after its answer; `chatter_stderr`. `language`, `colours`, `line_ends`.
        - `kib`: its answer is padded to that size. `forever`: and never ends. `exit`: ends with this status.
        - `stdout`, `stderr`: says this instead (`stdout=""`: nothing).
        - `fails_without_home` (claude's get): as versions before 2.1 do where the home cannot be written.
        - `launches` (claude's get): starts the registered server for its health check; `leaves_server` lets it run.
        """
        directory = self.home / ".stub"
        directory.mkdir(exist_ok=True)
        (directory / f"{client}.{verb}").write_text(json.dumps(behaviour))

    def release(self) -> None:
        """Let every held stub go on."""
        (self.home / ".stub" / "release").touch()

    def calls(self) -> list[dict[str, Any]]:
        """Every call so far: `client`, `arguments`, `directory`, `pid`, and `NO_COLOR`, `MCP_TIMEOUT` where set."""
        try:
            text = (self.home / ".stub" / "calls").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines()]

    def verbs(self, client: ClientName) -> list[str]:
        """The verbs that `client` was called with, in order."""
        return [call["arguments"][1] for call in self.calls() if call["client"] == client and call["arguments"][1:]]


def install_stub_clients(home: Path, programs: Path, *, clients: tuple[str, ...] = CLIENTS) -> StubHome:
    """Put the stubs into `programs` and make `home`, with a Codex home in it."""
    home.mkdir(parents=True, exist_ok=True)
    (home / ".codex").mkdir(exist_ok=True)
    programs.mkdir(parents=True, exist_ok=True)
    for client in clients:
        program = programs / client
        words = shlex.join([os.path.realpath(sys.executable), "-I", "-S", _compiled_program(), client])
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)
    return StubHome(home, programs)


@cache
def _compiled_program() -> str:
    """Python compiles a script anew at each start, which takes a third of what a stub does."""
    return str(py_compile.compile(str(PROGRAM), doraise=True))
