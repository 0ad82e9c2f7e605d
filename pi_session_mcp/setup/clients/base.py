"""What all clients have in common: what can be asked of them, and what their answers can mean.

An adapter decides which command to run and what its answer means. A `Runner` runs it, within bounds, and proves that it
is gone.
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
"""What fits into every pipe without being read."""
ANSWER_LIMIT_BYTES: Final = 32 * 1024
"""No answer that we understand is longer. A longer answer is not read."""


Settings: TypeAlias = "Mapping[str, Tree]"
"""What the owner has set for a registration and what does not change what is started, in the client's own words."""


NO_SETTINGS: Final[Settings] = MappingProxyType({})


class Seen(StrEnum):
    """What a client shows under our name at a target."""

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
    """A client's command gave no answer that could be read. Has no text of the client.

    With `NOT_NEUTRAL`, `mark` is the name that makes a project of the directory that the command would have run in.
    """

    def __init__(self, kind: CommandFailure, mark: str | None = None) -> None:
        super().__init__(kind.value)
        self.kind = kind
        self.mark = mark


@dataclass(frozen=True, slots=True)
class Inspection:
    """What an inspection found.

    `registration` is what the target's own scope has, if all of it could be read and everything else is at its default
    or among `settings`. So an earlier registration of ours can be told from that of another owner. `other_scope` names
    the scope that is shown instead of the target's. `is_disabled` says that the client would not start it; it is
    divergent then.
    """

    seen: Seen
    registration: Registration | None = None
    other_scope: str | None = None
    is_disabled: bool = False
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a command is told on its standard input, which stays open until `is_over` says so of its output.

    `says` is at most `SAID_LIMIT_BYTES` long.
    """

    says: bytes
    is_over: Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class ClientCommand:
    """One call of a client's program. `argv[0]` is an absolute path. `environment` is its whole environment."""

    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    mutates: bool
    conversation: Conversation | None = None


@dataclass(frozen=True, slots=True)
class ClientOutput:
    """What a client's program wrote until it ended by itself. A negative `exit_code` is a signal."""

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class AskedFrom:
    """Where the operator asks from.

    `environ` is the operator's environment, and `directory` the real path that the command runs in. `neutral` is the
    directory of ours from which only user scopes can be seen. `neutral.neutral_directory` is asked before each use.
    """

    environ: Mapping[str, str]
    directory: Path
    neutral: Path


class Runner(Protocol):
    """Runs one command of a client within bounds, and proves its end."""

    async def run(self, command: ClientCommand) -> ClientOutput:
        """Run `command`; nothing of it runs any more when this returns. Raises `CommandFailed`."""
        ...


class Client(Protocol):
    """One MCP client by its contract. Every method that runs a command can raise `CommandFailed`."""

    @property
    def name(self) -> str:
        """The first word of its targets."""
        ...

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that its targets can name."""
        ...

    def home_is_usable(self) -> bool:
        """Whether the client has a configuration home that does not depend on the current directory."""
        ...

    def has_home(self) -> bool:
        """Whether that home exists, or the client would make it. Runs nothing."""
        ...

    def accepts(self, target: Target) -> bool:
        """Whether `target` means one definite registration in the operator's directory. Runs nothing."""
        ...

    def place(self, target: Target) -> str:
        """SHA-256, in hexadecimal digits, of the client's home and, where the scope depends on it, our directory."""
        ...

    async def discover(self, run: Runner) -> Discovery:
        """Find the client's program, and whether its help names what we need."""
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
        """Have `intent` registered, with `settings`. `False` when the client refused. Only an inspection proves it."""
        ...

    async def change(self, run: Runner, target: Target, intent: Registration) -> bool:
        """Have what is registered start `intent`, and keep everything else of it.

        `False` when the client cannot do that, and nothing has run. Only an inspection proves it.
        """
        ...

    async def remove(self, run: Runner, target: Target) -> bool:
        """Have our name removed at `target`. `False` when the client refused. Only an inspection proves it."""
        ...


def can_be_registered(intent: Registration) -> bool:
    """Whether every client shows and starts this registration exactly as it is.

    Some clients put the value of a variable in place of `${NAME}`, and show either of them.
    """
    texts = (intent.command, *intent.arguments, *intent.environment.values())
    return all(is_plain(text) and "${" not in text for text in texts)
