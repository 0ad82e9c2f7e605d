"""The Pi SDK, and the program that Pi's tools `grep` and `find` need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.subject import OK, Check, Subject, Unseen, error, fine, found, up_to, warning
from pi_session_mcp.doctor.subjects.node import RUNTIME, Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.doctor.installation import Installation
    from pi_session_mcp.runtime.locate import Sdk
    from pi_session_mcp.runtime.record import Installed

CONFIGURED_SDK: Final = (
    "Name a whole Pi SDK from 1.5.2 to 1.6.x as runtime.sdk in the configuration, "
    "or remove that entry and run `pi-session-mcp runtime install`."
)
PI_RUNTIME_MISSING: Final = error(
    "pi_runtime_missing",
    "Pi runtime",
    "found",
    "not found",
    "No Pi SDK was found, or the one that is used is incomplete.",
    RUNTIME,
    CONFIGURED_SDK,
)
PI_VERSION_UNSUPPORTED: Final = error(
    "pi_version_unsupported",
    "Pi runtime",
    "tested version",
    "version is not a tested one",
    "The Pi SDK that is used is older or newer than the tested versions, 1.5.2 to 1.6.x.",
    RUNTIME,
    CONFIGURED_SDK,
)
PI_RUNTIME_BROKEN: Final = error(
    "pi_runtime_broken",
    "Pi runtime",
    "starts",
    "does not start",
    "Node cannot load the Pi SDK, or the SDK is another one than its manifest says. No session starts.",
    "Run `pi-session-mcp runtime install` again; or correct runtime.node and runtime.sdk in the configuration, "
    "if they are set.",
)
SEARCH_TOOLS_MISSING: Final = warning(
    "search_tools_missing",
    "search tools",
    "found",
    "not found",
    "The program `rg` (ripgrep), which the model's tools `grep` and `find` need, is neither installed with the "
    "runtime nor on `PATH`. Sessions start, and these two tools fail.",
    "Run `pi-session-mcp runtime install`, which brings ripgrep, or install ripgrep so that `rg` is on PATH.",
)
_FOUND: Final = (PI_RUNTIME_MISSING, PI_VERSION_UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class PiRuntime:
    """The SDK as its files are, and whether Node could load it; `None` when Node was not asked."""

    sdk: Part
    loads: bool | None = None


def look_at_sdk(here: Installation, installed: Installed | None) -> tuple[Part, Sdk | None]:
    """The SDK that a server would use, by its files."""
    from pi_session_mcp.runtime.locate import find_sdk, find_tools
    from pi_session_mcp.runtime.problem import RuntimeProblem

    configured = here.asked.runtime.sdk is not None
    try:
        sdk = find_sdk(here.asked, here.environ, here.cwd, installed)
        find_tools(sdk, installed)
    except RuntimeProblem as problem:
        return Part(problem.code.value, configured=configured), None
    return Part(OK, configured=configured), sdk


def _look(here: Installation) -> PiRuntime | Unseen:
    sdk = here.runtime.sdk
    return sdk if isinstance(sdk, Unseen) else PiRuntime(sdk, here.answer.sdk_loads if here.answer else None)


def _verdict(seen: PiRuntime) -> Iterator[Check]:
    yield from up_to(_FOUND, seen.sdk.status, CONFIGURED_SDK if seen.sdk.configured else RUNTIME)
    if seen.loads is not None:
        yield fine(PI_RUNTIME_BROKEN) if seen.loads else found(PI_RUNTIME_BROKEN)


def _look_for_search_tools(here: Installation) -> bool | Unseen | None:
    """Whether Pi would find `rg`: with the runtime, where Pi itself puts it, or on `PATH`."""
    runtime = here.runtime
    if runtime.found is None:
        return runtime.sdk if isinstance(runtime.sdk, Unseen) else None
    from pi_session_mcp.platform.files import is_program
    from pi_session_mcp.runtime.locate import find_tools
    from pi_session_mcp.runtime.overrides import untrusted_directories
    from pi_session_mcp.runtime.programs import find_program

    if find_tools(runtime.found, runtime.installed) is not None:
        return True
    if isinstance(here.agent_directory, Path) and is_program(here.agent_directory / "bin" / "rg"):
        return True
    return find_program("rg", here.environ, untrusted_directories(here.asked, here.cwd)) is not None


def _verdict_on_search_tools(are_there: bool) -> Iterator[Check]:  # noqa: FBT001 - a fact, not a flag
    yield fine(SEARCH_TOOLS_MISSING) if are_there else found(SEARCH_TOOLS_MISSING)


SDK: Final = Subject((*_FOUND, PI_RUNTIME_BROKEN), _look, _verdict)
SEARCH_TOOLS: Final = Subject((SEARCH_TOOLS_MISSING,), _look_for_search_tools, _verdict_on_search_tools)
