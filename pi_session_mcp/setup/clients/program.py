"""What the adapters share: a client's program, where it is asked from, and where it keeps its files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_session_mcp.setup.clients.base import (
    ANSWER_LIMIT_BYTES,
    ClientCommand,
    CommandFailed,
    CommandFailure,
    Discovery,
)
from pi_session_mcp.setup.clients.neutral import neutral_directory

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.setup.clients.base import AskedFrom, ClientOutput, Runner
    from pi_session_mcp.setup.targets import Target

_VERBS: Final = ("get", "add", "remove")


@dataclass(frozen=True, slots=True)
class Program:
    """A client's command line as the operator would reach it.

    `home_variable` is what moves its configuration out of `home_below` in the operator's home.
    """

    word: str
    home_variable: str
    home_below: str
    asked_from: AskedFrom

    def path(self) -> str | None:
        """Where the program is. Relative entries of `PATH` are not searched: a project could have put it there."""
        entries = self.asked_from.environ.get("PATH", os.defpath).split(os.pathsep)
        return shutil.which(self.word, path=os.pathsep.join(filter(os.path.isabs, entries)))

    def home_is_usable(self) -> bool:
        """`HOME` must be absolute; the variable too, if it is set. A relative one would move with the directory."""
        moved = self.moved_home
        return os.path.isabs(self.asked_from.environ.get("HOME", "")) and (not moved or os.path.isabs(moved))

    @property
    def moved_home(self) -> str:
        """What the variable says; every client takes an empty value for none."""
        return self.asked_from.environ.get(self.home_variable, "")

    def can_have_home(self) -> bool:
        """Whether what the variable names is a directory, or nothing yet."""
        moved = self.moved_home
        return not moved or os.path.isdir(moved) or not os.path.lexists(moved)

    def place(self, target: Target, directory: Path | None) -> str:
        """SHA-256 of the client's home, the scope, and the directory where it matters.

        One home has one place, however it is written: behind a link, by way of `..`, or named by the variable although
        the client would go there without it.
        """
        home, moved = self.asked_from.environ.get("HOME", ""), self.moved_home
        usual = os.path.realpath(os.path.join(home, self.home_below))
        named = ["HOME", home] if not moved or os.path.realpath(moved) == usual else [self.home_variable, moved]
        where = "" if directory is None else os.path.realpath(directory)
        parts = [target.client, target.scope, target.alias, named[0], os.path.realpath(named[1]), where]
        return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()

    async def discover(self, run: Runner) -> Discovery:
        """Whether the program is there and its `mcp --help` names what we need."""
        if self.path() is None:
            return Discovery.MISSING
        output = await run.run(self.from_neutral("mcp", "--help"))
        return Discovery.USABLE if _names_all_verbs(output) else Discovery.UNSUPPORTED

    def from_neutral(self, *arguments: str, mutates: bool = False, **settings: str) -> ClientCommand:
        """A call that sees the user scope only. Raises `CommandFailed`."""
        directory = neutral_directory(self.asked_from.neutral, self.asked_from.environ)
        return self.call(directory, *arguments, mutates=mutates, **settings)

    def call(self, directory: Path, *arguments: str, mutates: bool = False, **settings: str) -> ClientCommand:
        """A call with the operator's environment and `settings`. Raises `CommandFailed`."""
        path = self.path()
        if path is None:
            raise CommandFailed(CommandFailure.MISSING)
        environment = {**self.asked_from.environ, "NO_COLOR": "1", **settings}
        return ClientCommand((path, *arguments), directory, environment, mutates=mutates)


def text_of(output: bytes) -> str | None:
    """An answer's text; None when it is too long or not UTF-8, so that nobody reads a part of it."""
    if len(output) > ANSWER_LIMIT_BYTES:
        return None
    try:
        return output.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _names_all_verbs(output: ClientOutput) -> bool:
    text = text_of(output.stdout)
    if output.exit_code != 0 or text is None:
        return False
    return all(re.search(rf"^ +{verb}(?: |$)", text, re.MULTILINE) for verb in _VERBS)
