"""What clients with only a user scope and JSON answers share. All calls are made from a neutral directory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pi_session_mcp.setup.clients.base import NO_SETTINGS, can_be_registered
from pi_session_mcp.setup.clients.program import Program
from pi_session_mcp.setup.targets import SCOPES

if TYPE_CHECKING:
    from pi_session_mcp.setup.clients.base import AskedFrom, ClientOutput, Discovery, Inspection, Runner, Settings
    from pi_session_mcp.setup.registration import Registration
    from pi_session_mcp.setup.targets import Target


@dataclass(frozen=True, slots=True)
class UserScopeClient(ABC):
    """An adapter without the reading of answers; see `base.Client`.

    `as_json` makes `mcp get` answer in JSON with every value. `home_below` is the client's home in the operator's,
    unless the variable names another.
    """

    name: ClassVar[str]
    word: ClassVar[str]
    home_variable: ClassVar[str]
    home_below: ClassVar[str]
    as_json: ClassVar[tuple[str, ...]]
    asked_from: AskedFrom

    @staticmethod
    @abstractmethod
    def read(output: ClientOutput, target: Target, intent: Registration) -> Inspection:
        """What an answer of `mcp get` says about `target`. Pure."""

    @abstractmethod
    def has_home(self) -> bool:
        """See `base.Client`."""

    @abstractmethod
    def can_add(self, settings: Settings) -> bool:
        """See `base.Client`."""

    @abstractmethod
    def options(self, settings: Settings) -> tuple[str, ...]:
        """The arguments of `mcp add` for `settings` that can be added."""

    @abstractmethod
    async def change(self, run: Runner, target: Target, intent: Registration) -> bool:
        """See `base.Client`."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """See `base.Client`."""
        return SCOPES[self.name]

    @property
    def _program(self) -> Program:
        return Program(self.word, self.home_variable, self.home_below, self.asked_from)

    def home_is_usable(self) -> bool:
        """See `base.Client`."""
        return self._program.home_is_usable()

    def accepts(self, target: Target) -> bool:
        """See `base.Client`."""
        return target.scope in self.scopes

    def place(self, target: Target) -> str:
        """See `base.Client`."""
        return self._program.place(target, None)

    async def discover(self, run: Runner) -> Discovery:
        """See `base.Client`."""
        return await self._program.discover(run)

    async def inspect(self, run: Runner, target: Target, intent: Registration) -> Inspection:
        """See `base.Client`."""
        output = await run.run(self._program.from_neutral("mcp", "get", target.alias, *self.as_json))
        return self.read(output, target, intent)

    async def hidden_by(self, run: Runner, target: Target) -> str | None:  # noqa: ARG002 - there is nothing to ask
        """See `base.Client`. Such a client shows no other scope in place of the user's."""
        return None

    async def add(self, run: Runner, target: Target, intent: Registration, settings: Settings = NO_SETTINGS) -> bool:
        """See `base.Client`."""
        if not can_be_registered(intent) or not self.can_add(settings):
            return False
        environment = [word for key, value in intent.environment.items() for word in ("--env", f"{key}={value}")]
        options = (*environment, *self.options(settings))
        words = ("mcp", "add", target.alias, *options, "--", intent.command, *intent.arguments)
        return (await run.run(self._program.from_neutral(*words, mutates=True))).exit_code == 0

    async def remove(self, run: Runner, target: Target) -> bool:
        """See `base.Client`. Codex reports success for an absent name, too."""
        output = await run.run(self._program.from_neutral("mcp", "remove", target.alias, mutates=True))
        return output.exit_code == 0
