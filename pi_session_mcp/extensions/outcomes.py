"""What can be found of a pinned extension, what comes of it, and what an operator does about it: one table. Pure.

The server refuses by it, and `extensions check` and the doctor report by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from pi_session_mcp.errors import Code

Fault: TypeAlias = Literal[Code.EXTENSION_NOT_INSTALLED, Code.EXTENSION_VERSION_MISMATCH, Code.EXTENSION_LOAD_FAILED]
"""With which code a session is refused, as far as the files tell without running anything."""

OK: Final = "ok"
"""The status of an extension with which a session may start."""


class Condition(StrEnum):
    """What was found. Each is also an id of the doctor."""

    MISSING = "extension_missing"
    VERSION_MISMATCH = "extension_version_mismatch"
    IN_WORKSPACE = "extension_in_workspace"
    BROKEN = "extension_broken"
    FORM_UNSUPPORTED = "extension_form_unsupported"
    NO_EXTENSION = "package_without_extension"
    DEPENDENCY_MISSING = "extension_dependency_missing"
    DEPENDENCY_OUTSIDE = "extension_dependency_outside"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What comes of a condition: the code of the refusal, or `None` when a session starts all the same."""

    fault: Fault | None
    remediation: str


VERDICTS: Final[dict[Condition, Verdict]] = {
    Condition.MISSING: Verdict(
        Code.EXTENSION_NOT_INSTALLED, "Install the pinned version with Pi: pi install npm:<name>@<version>."
    ),
    Condition.VERSION_MISMATCH: Verdict(
        Code.EXTENSION_VERSION_MISMATCH, "Install the pinned version with Pi, or pin the version that is installed."
    ),
    Condition.IN_WORKSPACE: Verdict(
        Code.EXTENSION_LOAD_FAILED,
        "Keep Pi's agent directory, and what its packages are linked to, outside of every workspace.",
    ),
    Condition.BROKEN: Verdict(
        Code.EXTENSION_LOAD_FAILED,
        "Remove the package with Pi and install it again; if it stays broken, pin another version.",
    ),
    Condition.FORM_UNSUPPORTED: Verdict(
        Code.EXTENSION_LOAD_FAILED,
        "Take the pin out of the profile, or pin a version that declares its extensions in a supported form.",
    ),
    Condition.NO_EXTENSION: Verdict(
        Code.EXTENSION_LOAD_FAILED,
        "Take the pin out of the profile: skills, prompt templates and themes of a package are not loaded.",
    ),
    Condition.DEPENDENCY_MISSING: Verdict(
        None, "Remove the package with Pi and install it again, so that its dependencies are installed with it."
    ),
    Condition.DEPENDENCY_OUTSIDE: Verdict(
        None, "Remove the package with Pi and install it again, so that its dependencies are copies and not links."
    ),
}


class Unusable(Exception):  # noqa: N818 - an expected finding
    """What was found is no installation of the pin that a session could use."""

    def __init__(self, condition: Condition) -> None:
        super().__init__(condition.value)
        self.condition = condition
