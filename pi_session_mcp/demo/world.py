"""The throw-away world of the demonstration: a directory of its own, and a model that follows a script."""

from __future__ import annotations

import difflib
import json
import os
import secrets
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.demo.model import (
    PROVIDER,
    Call,
    Echo,
    Recall,
    Say,
    ScriptedModel,
    Stall,
    write_agent_directory,
)
from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORKSPACE: Final = "playground"
READER: Final = "reader"
CODER: Final = "coder"

LOOK: Final = "Look around and tell me the code word."
FOLLOW_UP: Final = "What did I ask you first?"
TRESPASS: Final = "Try everything that you may not do."
FIX: Final = "Fix the typo in greet.py."
PONDER: Final = "Think about it for ever."

NOTES: Final = "notes.txt"
CODE: Final = "greet.py"
_OUTSIDE: Final = "outside.txt"
_TYPO: Final = 'return "Helo, " + name'
_FIXED: Final = 'return "Hello, " + name'

FORBIDDEN: Final = (
    ("bash", Call("bash", {"command": "touch made-by-bash.txt"})),
    ("write", Call("write", {"path": "made-by-write.txt", "content": "x"})),
    ("edit", Call("edit", {"path": CODE, "edits": [{"oldText": _TYPO, "newText": "pass"}]})),
    ("read ..", Call("read", {"path": f"../{_OUTSIDE}"})),
)
"""What the model tries in the read-only session: the name that we show, and the tool call."""

_PASSED_ON: Final = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "USER")


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """Everything lies below `root`, a directory that only this user can enter.

    `code_word` is random and stands in the notes in the workspace. `secret` is random and stands in a file outside of
    it.
    """

    root: Path
    model: ScriptedModel
    code_word: str
    secret: str

    @property
    def workspace(self) -> Path:
        """The directory that the sessions work in."""
        return self.root / "workspace"

    @property
    def temporary(self) -> Path:
        """Where the server and the processes below it put temporary files."""
        return self.root / "tmp"

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The server's environment: a few of our variables, as a client passes them on, and no credential."""
        kept = {name: environ[name] for name in _PASSED_ON if name in environ}
        return kept | {VARIABLE: str(self.root / "config.json"), "TMPDIR": str(self.temporary)}

    def files(self) -> dict[str, str]:
        """The text of each file in the workspace, by its path there."""
        return {
            str(path.relative_to(self.workspace)): path.read_text(encoding="utf-8", errors="replace")
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file()
        }

    def left_over(self) -> int:
        """How many temporary files there are."""
        return sum(1 for _ in self.temporary.rglob("*"))


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """A unified diff of what changed between two looks at the workspace, with a line of context."""
    lines: list[str] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        lines += difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=1, lineterm="")
    return tuple(lines)


@contextmanager
def throw_away_world() -> Iterator[DemoWorld]:
    """Make the world, and remove it when the block is left. Raises `OSError` if no temporary directory can be made.

    Use it where no signal handler can raise an exception, or the directory could stay behind.
    """
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="pi-session-mcp-demo-")))
    try:
        with ScriptedModel() as model:
            world = DemoWorld(root, model, code_word=secrets.token_hex(4), secret=secrets.token_hex(16))
            _furnish(world)
            _script(model)
            yield world
    finally:
        shutil.rmtree(root)


def _furnish(world: DemoWorld) -> None:
    world.workspace.mkdir()
    world.temporary.mkdir()
    write_agent_directory(world.root / "agent", world.model.base_url)
    contents = {
        world.workspace / NOTES: f"The code word is {world.code_word}.\n",
        world.workspace / CODE: f"def greet(name):\n    {_TYPO}\n",
        world.root / _OUTSIDE: f"{world.secret}\n",
        world.root / "config.json": json.dumps(_configuration(world)),
    }
    for path, text in contents.items():
        path.write_text(text, encoding="utf-8")


def _configuration(world: DemoWorld) -> dict[str, object]:
    model = {"provider": PROVIDER, "model": "scripted-1", "thinkingLevel": "off"}
    return {
        "workspaces": {WORKSPACE: str(world.workspace)},
        "executionProfiles": {
            READER: {"default": True, "permissionProfile": "read-only", **model},
            CODER: {"permissionProfile": "coding", **model},
        },
        "piAgentDirectory": str(world.root / "agent"),
    }


def _script(model: ScriptedModel) -> None:
    model.on(LOOK, Call("ls", {"path": "."}), Call("read", {"path": NOTES}), Echo(separator="\n"))
    model.on(FOLLOW_UP, Recall("You asked: "))
    model.on(TRESPASS, *(call for _, call in FORBIDDEN), Say("I could do none of it."))
    model.on(FIX, Call("edit", {"path": CODE, "edits": [{"oldText": _TYPO, "newText": _FIXED}]}), Say("Fixed."))
    model.on(PONDER, Stall())
