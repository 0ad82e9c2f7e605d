"""One server for the tests of a module whose sessions have external servers, each with profiles of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.external import BridgeWorld, close
from tests.support.trees import kill_all, survivors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.process.client import Child
    from tests.support.external import Fixture


class SharedBridge:
    """Fixture servers by a name, each granted to the profile of the same name, and the server that has them all."""

    def __init__(self, world: BridgeWorld, fixtures: Mapping[str, Fixture], variables: Mapping[str, str]) -> None:
        self.world = world
        self.fixtures = fixtures
        self._variables = variables
        self.child: Child = world.serve(**variables)

    def renew(self) -> None:
        """A server that the last test has ended is replaced."""
        if self.child.process.poll() is not None:
            self.child = self.world.serve(**self._variables)

    def start(self, profile: str) -> str:
        """A session's id."""
        return self.world.start_session(self.child, profile)

    def clear(self) -> None:
        """Close what the test has left, also when it has failed."""
        if self.child.process.poll() is None:
            for session in self.child.call("pi_session_list")["sessions"]:
                close(self.child, session["id"])
        left: list[Any] = [process for fixture in self.world.fixtures for process in fixture.alive()]
        kill_all(left)
        survivors(left)
