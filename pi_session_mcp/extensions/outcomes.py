"""What can be found of a pinned extension, and what an operator does about it: one table. Pure.

The server answers with these codes, `extensions check` and the doctor report them.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from pi_session_mcp.errors import Code

Fault: TypeAlias = Literal[Code.EXTENSION_NOT_INSTALLED, Code.EXTENSION_VERSION_MISMATCH, Code.EXTENSION_LOAD_FAILED]
"""What is wrong with an installation, as far as its files tell without running anything."""

OK: Final = "ok"
"""The status of an extension that is installed as pinned."""

REMEDIATIONS: Final[dict[Fault, str]] = {
    Code.EXTENSION_NOT_INSTALLED: "Install the pinned version with Pi: pi install npm:<name>@<version>.",
    Code.EXTENSION_VERSION_MISMATCH: "Install the pinned version with Pi, or pin the version that is installed.",
    Code.EXTENSION_LOAD_FAILED: "Reinstall the package with Pi; if it stays broken, pin a version that is whole, "
    "and keep Pi's agent directory outside of every workspace.",
}
