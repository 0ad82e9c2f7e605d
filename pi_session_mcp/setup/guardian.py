"""Commands of clients, each bounded, and each under a keeper that holds the fence: its guardian.

The command has the lock's descriptor as well, at a high number. So the fence stays even when the guardian is killed,
for as long as anything lives that the command started.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.keeper.child import Command
from pi_session_mcp.keeper.pipes import ERRORS, INPUT, OUTPUT
from pi_session_mcp.keeper.running import End, Input, run
from pi_session_mcp.platform.text import path_text
from pi_session_mcp.setup.clients.base import ClientOutput, CommandFailed, CommandFailure
from pi_session_mcp.setup.steps import Doing, Running, unwatched

if TYPE_CHECKING:
    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.keeper.child import Child
    from pi_session_mcp.setup.clients.base import ClientCommand
    from pi_session_mcp.setup.fence import Fence
    from pi_session_mcp.setup.steps import OnStep

OUTPUT_LIMIT_BYTES: Final = 1024 * 1024
FENCE_DESCRIPTOR: Final = 200
"""Where a command gets the fence: above what programs use by themselves, below the 256 that macOS allows at first."""

_FAILURES: Final = {
    End.NOT_STARTED: CommandFailure.NOT_STARTED,
    End.TIMED_OUT: CommandFailure.TIMEOUT,
    End.TOO_LARGE: CommandFailure.TOO_LARGE,
    End.UNKNOWN: CommandFailure.UNKNOWN_PROCESSES,
}


@dataclass(frozen=True, slots=True)
class Guarded:
    """Runs clients' commands; see `clients.base.Runner`. `doing` says what for."""

    fence: Fence | None
    deadlines: Deadlines = DEADLINES
    on_step: OnStep = unwatched
    doing: Doing = Doing.DISCOVER

    def at(self, doing: Doing) -> Self:
        """The same for commands of this stretch of the run."""
        return replace(self, doing=doing)

    async def run(self, command: ClientCommand) -> ClientOutput:
        """Run `command`; nothing of it runs any more when this returns. Raises `CommandFailed`.

        With `UNKNOWN_PROCESSES` something of it may still run, and the guardian goes on and keeps the fence.
        """
        self.on_step(self.doing.at("starting"), None)
        told = command.conversation
        ended = await run(
            self._under_guard(command),
            within_s=self.deadlines.setup_command_s,
            max_bytes=OUTPUT_LIMIT_BYTES,
            told=None if told is None else Input(told.says, told.is_over),
            on_started=self._tell_running,
        )
        if ended.exit_code is None:
            raise CommandFailed(_FAILURES[ended.end])
        self.on_step(self.doing.at("done"), None)
        return ClientOutput(ended.exit_code, ended.output, ended.errors)

    def _under_guard(self, command: ClientCommand) -> Command:
        held = None if self.fence is None else self.fence.descriptor
        return Command(
            argv=(command.argv[0], *map(path_text, command.argv[1:])),
            environment=command.environment,
            directory=str(command.directory),
            patience_s=self.deadlines.setup_gone_s,
            streams=(OUTPUT, ERRORS) if command.conversation is None else (OUTPUT, ERRORS, INPUT),
            descriptors={} if held is None else {FENCE_DESCRIPTOR: held},
            dies_with_keeper=True,
            held=held,
        )

    def _tell_running(self, guardian: Child) -> None:
        assert guardian.command_pid is not None
        self.on_step(self.doing.at("running"), Running(guardian.pid, guardian.command_pid))
