"""One table: what can be found of a pinned extension, what follows, and what the operator can do about it. Pure.

The server refuses by this table, and `extensions check` and the doctor report by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from pi_session_mcp.errors import Code

Fault: TypeAlias = Literal[Code.EXTENSION_NOT_INSTALLED, Code.EXTENSION_VERSION_MISMATCH, Code.EXTENSION_LOAD_FAILED]
"""The codes with which a session is refused, as far as files tell without running anything."""

OK: Final = "ok"
"""The status of an extension that a session may have."""


class Condition(StrEnum):
    """What was found. Each is also an id of the doctor's."""

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
    """What follows from a condition: the code of the refusal, or `None` when a session starts anyway."""

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
    """A session cannot use what was found under the name of the pin."""

    def __init__(self, condition: Condition) -> None:
        super().__init__(condition.value)
        self.condition = condition
