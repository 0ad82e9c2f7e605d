"""Runs the commands of clients without any of the protection that they deserve, for clients that we wrote."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.setup.clients.base import ClientOutput

if TYPE_CHECKING:
    from pi_session_mcp.setup.clients.base import ClientCommand


@dataclass(frozen=True, slots=True)
class PlainRunner:
    """A `Runner` for stubs; `commands` are those that it was given."""

    commands: list[ClientCommand] = field(default_factory=list)

    async def run(self, command: ClientCommand) -> ClientOutput:
        """Run `command` to its end."""
        self.commands.append(command)
        with anyio.fail_after(60):
            done = await anyio.run_process(
                command.argv,
                stdin=subprocess.DEVNULL,
                check=False,
                cwd=command.directory,
                env=dict(command.environment),
            )
        return ClientOutput(done.returncode, done.stdout, done.stderr)
