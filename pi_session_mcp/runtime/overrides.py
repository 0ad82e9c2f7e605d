"""What the operator's configuration says about the runtime, as far as this folder needs it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


class Override(Protocol):
    """Programs and packages that replace the installed ones."""

    @property
    def node(self) -> Path | None:
        """Absolute path of the program."""

    @property
    def sdk(self) -> Path | None:
        """Absolute path of the package directory."""


class Asked(Protocol):
    """The part of a configuration that this folder reads. `config.model.Configuration` has it."""

    @property
    def workspaces(self) -> Mapping[str, Path]:
        """Directories where a model may write. Nothing that is found below them is run."""

    @property
    def pi_agent_directory(self) -> Path | None:
        """Pi's agent directory, if it is configured."""

    @property
    def runtime(self) -> Override:
        """Programs and packages that replace the installed ones."""


@dataclass(frozen=True, slots=True)
class NoOverride:
    """Nothing is replaced."""

    node: Path | None = None
    sdk: Path | None = None


@dataclass(frozen=True, slots=True)
class NothingAsked:
    """What counts without a configuration."""

    workspaces: Mapping[str, Path] = field(default_factory=dict)
    pi_agent_directory: Path | None = None
    runtime: Override = field(default_factory=NoOverride)


class Ignored(StrEnum):
    """Why the variable that names Pi's agent directory does not count."""

    NOT_ABSOLUTE = "not_absolute"
    IN_PROJECT = "in_project"


def untrusted_directories(asked: Asked, cwd: Path) -> Iterable[Path]:
    """The working directory and the workspaces: a project, or a model that works in it, can write there.

    A working directory `/` is no project. Everything is below it, so it does not count.
    """
    places = () if set(str(cwd)) == {"/"} else (cwd,)
    return (*places, *asked.workspaces.values())
