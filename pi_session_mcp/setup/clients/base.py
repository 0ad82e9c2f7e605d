"""What every client has in common: what can be asked of it, and what its answers can mean.

An adapter decides what to run and what the answer means. It runs nothing itself: a `Runner` does, which bounds the
command and proves that it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from pi_session_mcp.setup.registration import is_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target
    from pi_session_mcp.terms.strict_json import Tree

SAID_LIMIT_BYTES: Final = 16 * 1024
"""What fits into every pipe at once."""
ANSWER_LIMIT_BYTES: Final = 32 * 1024
"""No answer that we understand is longer; a longer one is not read."""


Settings: TypeAlias = "Mapping[str, Tree]"
"""What the owner of a registration has set for it that does not change what is started, in the client's own words."""


NO_SETTINGS: Final[Settings] = MappingProxyType({})


class Seen(StrEnum):
    """What a client says about our name at a target."""

    ABSENT = "absent"
    EQUIVALENT = "equivalent"
    DIVERGENT = "divergent"
    UNSUPPORTED = "unsupported"


class Discovery(StrEnum):
    """Whether a client can be used at all."""

    MISSING = "missing"
    UNSUPPORTED = "unsupported"
    USABLE = "usable"


class CommandFailure(StrEnum):
    """Why a client's command gave no answer."""

    MISSING = "missing"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    UNKNOWN_PROCESSES = "unknown_processes"
    NOT_STARTED = "not_started"
    NOT_NEUTRAL = "not_neutral"


class CommandFailed(Exception):  # noqa: N818 - an expected answer of the world
    """A client's command gave no answer that could be read. Carries no text of the client's.

    `mark` is the name that makes a project of the directory which the command would have run in, with `NOT_NEUTRAL`.
    """

    def __init__(self, kind: CommandFailure, mark: str | None = None) -> None:
        super().__init__(kind.value)
        self.kind = kind
        self.mark = mark


@dataclass(frozen=True, slots=True)
class Inspection:
    """What an inspection found.

    `registration` is what the target's own scope holds, if all of it could be read and everything else is at its
    default or among `settings`; so an earlier registration of ours can be told from somebody else's. `other_scope`
    names the scope whose registration is shown instead of the target's. `is_disabled` says that the client would not
    start it, and then it is divergent.
    """

    seen: Seen
    registration: Registration | None = None
    other_scope: str | None = None
    is_disabled: bool = False
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a command is told on its standard input, which stays open until `is_over` says so of what it answered.

    `says` is at most `SAID_LIMIT_BYTES` long.
    """

    says: bytes
    is_over: Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class ClientCommand:
    """One call of a client's program. `argv[0]` is an absolute path; `environment` is all that it gets."""

    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    mutates: bool
    conversation: Conversation | None = None


@dataclass(frozen=True, slots=True)
class ClientOutput:
    """What a client's program left behind when it ended by itself; a negative `exit_code` is a signal."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class AskedFrom:
    """Where the operator asks from.

    `environ` is the operator's environment, `directory` the real path that the command runs in, and `neutral` the
    directory of ours from which only user scopes can be seen (see `neutral.neutral_directory`, which is asked before
    each use).
    """

    environ: Mapping[str, str]
    directory: Path
    neutral: Path


class Runner(Protocol):
    """Runs one command of a client, bounded, to its proven end."""

    async def run(self, command: ClientCommand) -> ClientOutput:
        """Run `command`; nothing of it runs any more when this returns. Raises `CommandFailed`."""
        ...


class Client(Protocol):
    """One MCP client by its contract. Everything that runs a command raises `CommandFailed` as well."""

    @property
    def name(self) -> str:
        """The first word of its targets."""
        ...

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that its targets can name."""
        ...

    def home_is_usable(self) -> bool:
        """Whether the environment gives the client a configuration home that does not depend on the directory."""
        ...

    def has_home(self) -> bool:
        """Whether that home is there, or the client would make it. Runs nothing."""
        ...

    def accepts(self, target: Target) -> bool:
        """Whether `target` means one definite registration in the operator's directory. Runs nothing."""
        ...

    def place(self, target: Target) -> str:
        """SHA-256 in hexadecimal of where the client keeps this registration: its home and, where it matters, ours."""
        ...

    async def discover(self, run: Runner) -> Discovery:
        """Find the client's program and whether its help names what we need."""
        ...

    async def inspect(self, run: Runner, target: Target, intent: Registration) -> Inspection:
        """Ask what is registered under our name at `target`."""
        ...

    async def hidden_by(self, run: Runner, target: Target) -> str | None:
        """The other scope whose registration of our name is used in the operator's directory, if there is one.

        For people to read. Asking makes the client look at the directory's own configuration.
        """
        ...

    def can_add(self, settings: Settings) -> bool:
        """Whether `add` can make a registration with these settings."""
        ...

    async def add(self, run: Runner, target: Target, intent: Registration, settings: Settings = NO_SETTINGS) -> bool:
        """Have `intent` registered, with `settings`; only an inspection proves it. False when the client said no."""
        ...

    async def change(self, run: Runner, target: Target, intent: Registration) -> bool:
        """Have what is registered start `intent` from now on, and all else of it left as it is.

        Only an inspection proves it. False when the client has no way to do that: then nothing has run.
        """
        ...

    async def remove(self, run: Runner, target: Target) -> bool:
        """Have our name removed at `target`; only an inspection proves it. False when the client said no."""
        ...


def can_be_registered(intent: Registration) -> bool:
    """Whether every client shows and starts this registration exactly as it is, so that it can be told from others.

    Some clients put the value of a variable in the place of `${NAME}`, and show the one or the other.
    """
    texts = (intent.command, *intent.arguments, *intent.environment.values())
    return all(is_plain(text) and "${" not in text for text in texts)
