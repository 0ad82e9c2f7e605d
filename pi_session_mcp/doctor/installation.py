"""The installation that the doctor looks at, and what several subjects need to know of it.

Everything but the doctor's own modules is imported inside a look, so that the doctor can still tell about a broken
installation.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.pi_answer import PiAnswer
from pi_session_mcp.doctor.subject import OK, Unseen, survive
from pi_session_mcp.doctor.subjects.configuration import Read, read_configuration
from pi_session_mcp.doctor.subjects.node import Part, look_at_node
from pi_session_mcp.doctor.subjects.package import Package, look_at_package
from pi_session_mcp.doctor.subjects.runtime import look_at_sdk
from pi_session_mcp.doctor.subjects.setup_state import registered_clients

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.config.place import Place
    from pi_session_mcp.runtime.locate import Sdk
    from pi_session_mcp.runtime.overrides import Asked
    from pi_session_mcp.runtime.record import Installed

_UNSEEN: Final = Unseen()


@dataclass(frozen=True, slots=True)
class Runtime:
    """Node and the Pi SDK, and where they are. `program` is a Node that can be used; `places` are those of both."""

    node: Part | Unseen | None = _UNSEEN
    sdk: Part | Unseen = _UNSEEN
    program: Path | None = None
    found: Sdk | None = None
    installed: Installed | None = None
    places: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Installation:
    """Where to look, and what is there: each part is looked at once, when a subject first asks for it.

    `prefix` is the Python environment (`sys.prefix`). A look that fails leaves `Unseen` or `None`.
    """

    environ: Mapping[str, str]
    cwd: Path
    prefix: Path | None = None
    package_root: Path | None = None
    platform: str = sys.platform
    root: Path = Path("/")

    @classmethod
    def here(cls) -> Installation:
        """This process's own."""
        from pi_session_mcp.platform.paths import working_directory

        return cls(os.environ, working_directory())

    @cached_property
    def package(self) -> Package | Unseen:
        """What the installer left."""
        return survive(partial(look_at_package, self.package_root), _UNSEEN)

    @cached_property
    def read(self) -> Read | Unseen:
        """What reading the configuration gave."""
        return survive(partial(read_configuration, self), _UNSEEN)

    @property
    def place(self) -> Place | None:
        """Where the configuration is, if it is named."""
        return None if isinstance(self.read, Unseen) else self.read.place

    @property
    def configuration(self) -> Configuration | None:
        """The configuration, if it is valid."""
        return None if isinstance(self.read, Unseen) else self.read.configuration

    @cached_property
    def asked(self) -> Asked:
        """What the operator asks of the runtime. Raises whatever the import of a missing module raises."""
        from pi_session_mcp.runtime.overrides import NothingAsked

        return self.configuration or NothingAsked()

    @cached_property
    def agent_directory(self) -> Path | Unseen | None:
        """Pi's agent directory; `None` when there is no home directory to look for it in."""
        return survive(partial(_find_agent_directory, self), _UNSEEN)

    @cached_property
    def runtime(self) -> Runtime:
        """Node and the Pi SDK."""
        return survive(partial(_look_at_runtime, self), Runtime())

    @cached_property
    def pi(self) -> PiAnswer | Unseen | None:
        """What Pi itself says; `None` where it needs another part that is missing."""
        return survive(partial(_ask_pi, self), _UNSEEN)

    @property
    def answer(self) -> PiAnswer | None:
        """What Pi itself says, if it was asked."""
        return self.pi if isinstance(self.pi, PiAnswer) else None

    @cached_property
    def state_directory(self) -> Path | Unseen | None:
        """Where setup keeps its records; `None` when there is no home directory to keep them in."""
        return survive(partial(_find_state_directory, self), _UNSEEN)

    @cached_property
    def registered_clients(self) -> frozenset[str] | None:
        """The clients in which setup has registered this server; `None` when its records do not say."""
        directory = self.state_directory
        return survive(partial(registered_clients, directory), None) if isinstance(directory, Path) else None


def _find_agent_directory(here: Installation) -> Path | None:
    from pi_session_mcp.errors import Refusal
    from pi_session_mcp.runtime.agent_directory import agent_directory

    try:
        return agent_directory(here.asked, here.environ, here.cwd)
    except Refusal:
        return None


def _look_at_runtime(here: Installation) -> Runtime:
    from pi_session_mcp.runtime.problem import RuntimeProblem
    from pi_session_mcp.runtime.record import find_installed

    try:
        installed = find_installed(here.environ, here.prefix)
    except RuntimeProblem as problem:  # the record of the install is damaged, and would have said which Node is used
        return Runtime(None, Part(problem.code.value, configured=False))
    node, program = look_at_node(here, installed)
    sdk, found = look_at_sdk(here, installed)
    places = (program, found and found.package, installed and installed.place.root)
    usable = program if node.status == OK else None
    return Runtime(node, sdk, usable, found, installed, tuple(place for place in places if place))


def _ask_pi(here: Installation) -> PiAnswer | Unseen | None:
    if isinstance(here.agent_directory, Unseen):
        return _UNSEEN
    if here.agent_directory is None or here.runtime.program is None or here.runtime.found is None:
        return None
    from pi_session_mcp.doctor.pi import ask_pi

    return ask_pi(here, here.runtime.program, here.runtime.found)


def _find_state_directory(here: Installation) -> Path | None:
    from pi_session_mcp.setup.result import Stopped
    from pi_session_mcp.setup.state_directory import state_directory

    try:
        return state_directory(here.environ)
    except Stopped:
        return None
