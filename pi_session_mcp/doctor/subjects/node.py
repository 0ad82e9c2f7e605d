"""Node.js: whether there is one, and whether it is new enough."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.doctor.subject import OK, Check, Subject, Unseen, error, up_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pi_session_mcp.doctor.installation import Installation
    from pi_session_mcp.runtime.record import Installed

RUNTIME: Final = "Run `pi-session-mcp runtime install`."
NODE: Final = (
    "Install pi-session-mcp with its extra `node`, or Node.js 22.19.0 or newer, "
    "then run `pi-session-mcp runtime install`."
)
NODE_VERSION: Final = (
    "Use Node.js 22.19.0 or newer: install pi-session-mcp with its extra `node`, "
    "then run `pi-session-mcp runtime install`."
)
CONFIGURED_NODE: Final = (
    "Name a program of Node.js 22.19.0 or newer as runtime.node in the configuration, "
    "or remove that entry and run `pi-session-mcp runtime install`."
)
NODE_MISSING: Final = error(
    "node_missing",
    "Node.js",
    "found",
    "not found",
    "No Node.js was found, or the one that is used cannot be run. It is looked for in [a fixed order](runtime.md), and "
    "the first one that is found is used.",
    RUNTIME,
    NODE,
    CONFIGURED_NODE,
)
NODE_VERSION_UNSUPPORTED: Final = error(
    "node_version_unsupported",
    "Node.js",
    "supported version",
    "version is too old",
    "The Node.js that is used is older than the Pi SDK requires (22.19.0), or its version is not that of a release.",
    RUNTIME,
    NODE_VERSION,
    CONFIGURED_NODE,
)
ROWS: Final = (NODE_MISSING, NODE_VERSION_UNSUPPORTED)
_ANSWER_LIMIT_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Part:
    """Node or the Pi SDK. `configured` says that the configuration chose it.

    `at_hand` says of a Node with a fault that an install would find another one that it can use.
    """

    status: str
    configured: bool
    at_hand: bool = False


def look_at_node(here: Installation, installed: Installed | None) -> tuple[Part, Path | None]:
    """The Node.js that a server would use, and where it is."""
    from pi_session_mcp.runtime.locate import find_node
    from pi_session_mcp.runtime.problem import RuntimeProblem

    program = None
    try:
        program = find_node(here.asked, here.environ, here.cwd, installed).program
        status = _judge(program, here.environ)
    except RuntimeProblem as problem:
        status = problem.code.value
    return Part(status, configured=here.asked.runtime.node is not None), program


def _look(here: Installation) -> Part | Unseen | None:
    node = here.runtime.node
    if not isinstance(node, Part) or node.status == OK or node.configured:
        return node
    return replace(node, at_hand=_is_at_hand(here))


def _is_at_hand(here: Installation) -> bool:
    """Whether `runtime install` would find a Node.js, with its npm, that it can use."""
    from pi_session_mcp.runtime.overrides import untrusted_directories
    from pi_session_mcp.runtime.toolchain import find_toolchain

    found = find_toolchain(here.environ, tuple(untrusted_directories(here.asked, here.cwd)), here.prefix)
    return found is not None and found.npm is not None and _judge(found.node, here.environ) == OK


def _judge(program: Path, environ: Mapping[str, str]) -> str:
    """The status of a Node.js program."""
    from pi_session_mcp.runtime.node_environment import without_node_options
    from pi_session_mcp.runtime.versions import node_is_supported

    version = node_version(program, without_node_options(environ))
    if version is None:
        return NODE_MISSING.id
    return OK if node_is_supported(version) else NODE_VERSION_UNSUPPORTED.id


def node_version(program: Path, environ: Mapping[str, str], *, within_s: float = DEADLINES.version_s) -> str | None:
    """What `node --version` says; `None` when it does not run, says too much, fails, or takes longer."""
    from pi_session_mcp.platform.brief_run import run

    said = run((str(program), "--version"), environ, within_s=within_s, limit_bytes=_ANSWER_LIMIT_BYTES)
    return said.text.decode("utf-8", "replace").strip() if said.ended_well else None


def _verdict(node: Part) -> Iterator[Check]:
    own = NODE_VERSION if node.status == NODE_VERSION_UNSUPPORTED.id else NODE
    remedy = CONFIGURED_NODE if node.configured else RUNTIME if node.at_hand else own
    yield from up_to(ROWS, node.status, remedy)


SUBJECT: Final = Subject(ROWS, _look, _verdict)
