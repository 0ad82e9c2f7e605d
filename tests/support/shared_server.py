"""One server for the tests of a module: each finds the fixture extension as if just installed, and no session."""

from __future__ import annotations

import shutil
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from tests.support.extensions import FIXTURE_NAME, package_directory
from tests.support.trees import WAIT_S, kill_all, survivors

if TYPE_CHECKING:
    from tests.support.extensions import ExtensionWorld, Installed, Recorded

FAILURE = "pi_session_creation_failed"


class SharedServer:
    """A server that tests take one after the other, between `renew` and `clear`; a test may end its hosts."""

    extension: Installed

    def __init__(self, world: ExtensionWorld) -> None:
        self.world = world
        self.child: Recorded = world.serve()
        self._failures = 0

    def renew(self) -> None:
        """Install the fixture package anew, for the next test; a server that the last one has ended is replaced."""
        if self.child.process.poll() is not None:
            self.child = self.world.serve()
        self.uninstall()
        self.extension = self.world.install()
        self._failures = len(self.child.diagnostics_of(FAILURE))

    def uninstall(self) -> None:
        """Remove the fixture package."""
        shutil.rmtree(package_directory(self.world.agent_directory, FIXTURE_NAME), ignore_errors=True)

    def clear(self) -> None:
        """Close what the test has left, also when it has failed."""
        if self.child.process.poll() is None:
            for session in self.child.call("pi_session_list")["sessions"]:
                self.child.call("pi_session_close", sessionId=session["id"])
        left = self.extension.processes()
        kill_all(left)
        survivors(left)

    def failure(self) -> dict[str, Any]:
        """The diagnostic of the first start that has failed since `renew`. Raises `TimeoutError`."""
        deadline = monotonic() + WAIT_S
        while len(said := self.child.diagnostics_of(FAILURE)) <= self._failures:
            if monotonic() > deadline:
                raise TimeoutError(FAILURE)
            sleep(0.01)  # a line of stderr may come a little after the answer on stdout
        return said[self._failures]
