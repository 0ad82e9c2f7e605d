"""The version of Node.js: what it says, and whether it is supported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.platform.brief_run import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pi_session_mcp.runtime.problem import RuntimeCode

_ANSWER_LIMIT_BYTES: Final = 4096


def judge(program: Path, environ: Mapping[str, str]) -> RuntimeCode:
    """Whether a Node.js program can be used, does not run, or is too old."""
    from pi_session_mcp.runtime.node_environment import without_node_options
    from pi_session_mcp.runtime.problem import RuntimeCode
    from pi_session_mcp.runtime.versions import node_is_supported

    version = node_version(program, without_node_options(environ))
    if version is None:
        return RuntimeCode.NODE_MISSING
    return RuntimeCode.OK if node_is_supported(version) else RuntimeCode.NODE_VERSION_UNSUPPORTED


def node_version(program: Path, environ: Mapping[str, str], *, within_s: float = DEADLINES.version_s) -> str | None:
    """What `node --version` says; `None` when it does not run, says too much, fails, or takes longer."""
    said = run((str(program), "--version"), environ, within_s=within_s, limit_bytes=_ANSWER_LIMIT_BYTES)
    return said.text.decode("utf-8", "replace").strip() if said.ended_well else None
