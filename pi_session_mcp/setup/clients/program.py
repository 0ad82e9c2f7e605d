"""What all adapters share: a client's program, where it is asked from, and where it keeps its files."""

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
    """A client's command line, as the operator would use it.

    Its configuration is in `home_below` in the operator's home, unless `home_variable` names another directory.
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
        """Whether `HOME` is absolute, and the variable, too, if it is set. A relative one moves with the directory."""
        moved = self.moved_home
        return os.path.isabs(self.asked_from.environ.get("HOME", "")) and (not moved or os.path.isabs(moved))

    @property
    def moved_home(self) -> str:
        """What the variable says. All clients ignore an empty value."""
        return self.asked_from.environ.get(self.home_variable, "")

    def can_have_home(self) -> bool:
        """Whether the variable names a directory, or nothing that exists yet."""
        moved = self.moved_home
        return not moved or os.path.isdir(moved) or not os.path.lexists(moved)

    def place(self, target: Target, directory: Path | None) -> str:
        """SHA-256 of the client's home, the scope, and the directory if the scope depends on it.

        A home has one place however it is written: through a link, with `..`, or by the variable although the client
        would use it anyway.
        """
        home, moved = self.asked_from.environ.get("HOME", ""), self.moved_home
        usual = os.path.realpath(os.path.join(home, self.home_below))
        named = ["HOME", home] if not moved or os.path.realpath(moved) == usual else [self.home_variable, moved]
        where = "" if directory is None else os.path.realpath(directory)
        parts = [target.client, target.scope, target.alias, named[0], os.path.realpath(named[1]), where]
        return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()

    async def discover(self, run: Runner) -> Discovery:
        """Whether the program exists and its `mcp --help` names what we need."""
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
    """The text of an answer. `None` when it is too long or not UTF-8, so that no part of it is read."""
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
