"""Which Node and Pi SDK would be used, by version and name, without paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio

from pi_session_mcp.errors import ExitStatus
from pi_session_mcp.runtime.locate import find_node, find_sdk, find_tools
from pi_session_mcp.runtime.overrides import untrusted_directories
from pi_session_mcp.runtime.probe import node_version
from pi_session_mcp.runtime.problem import REMEDIATIONS, RuntimeCode, RuntimeProblem, way_out
from pi_session_mcp.runtime.record import find_installed, shipped_lock_hash
from pi_session_mcp.runtime.toolchain import find_toolchain
from pi_session_mcp.runtime.versions import node_is_supported, release_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Source
    from pi_session_mcp.runtime.overrides import Asked
    from pi_session_mcp.runtime.record import Installed


@dataclass(frozen=True, slots=True)
class Part:
    """Node or the Pi SDK: its version, where it comes from, what is wrong with it, and what to do."""

    version: str | None = None
    source: Source | None = None
    code: RuntimeCode = RuntimeCode.OK
    way_out: str | None = None

    def members(self) -> dict[str, str | None]:
        """The part as the JSON report has it."""
        source = None if self.source is None else self.source.value
        return {"version": self.version, "source": source, "status": self.code.value}


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the runtime."""

    node: Part
    sdk: Part
    outdated: bool

    @property
    def code(self) -> RuntimeCode:
        """The code of the first thing that is wrong."""
        for part in (self.node, self.sdk):
            if part.code is not RuntimeCode.OK:
                return part.code
        return RuntimeCode.OUTDATED if self.outdated else RuntimeCode.OK

    @property
    def ok(self) -> bool:
        """Whether sessions can start. The install of another version of ours still works."""
        return self.code in {RuntimeCode.OK, RuntimeCode.OUTDATED}

    @property
    def exit_status(self) -> ExitStatus:
        """The exit status of `runtime status`."""
        return ExitStatus.OK if self.ok else ExitStatus.CHECK_FAILED

    @property
    def remediation(self) -> str | None:
        """What to do about the first thing that is wrong, in a fixed sentence."""
        wrong = (part.way_out for part in (self.node, self.sdk) if part.code is not RuntimeCode.OK)
        return next(wrong, None) or REMEDIATIONS[self.code]

    def members(self) -> dict[str, str | dict[str, str | None]]:
        """What the JSON report has besides `schemaVersion`, `ok` and `exitCode`."""
        told: dict[str, str | dict[str, str | None]] = {
            "status": self.code.value,
            "node": self.node.members(),
            "sdk": self.sdk.members(),
        }
        return told if self.remediation is None else told | {"remediation": self.remediation}


def status(asked: Asked, environ: Mapping[str, str], cwd: Path, *, prefix: Path | None = None) -> Status:
    """Look at what `locate` would choose, and ask Node for its version. Writes nothing. For commands only."""
    return anyio.run(status_async, asked, environ, cwd, prefix)


async def status_async(asked: Asked, environ: Mapping[str, str], cwd: Path, prefix: Path | None = None) -> Status:
    """See `status`."""
    try:
        installed = find_installed(environ, prefix)
    except RuntimeProblem as problem:
        return Status(Part(), Part(code=problem.code, way_out=REMEDIATIONS[problem.code]), outdated=False)
    sdk = _sdk(asked, environ, cwd, installed)
    outdated = installed is not None and sdk.source == "installed" and installed.record.lock != shipped_lock_hash()
    node = await _node(asked, environ, cwd, installed)
    if node.code is not RuntimeCode.OK:
        at_hand = await _node_at_hand(asked, environ, cwd, prefix)
        configured = asked.runtime.node is not None
        node = replace(node, way_out=way_out(node.code, configured=configured, node_at_hand=at_hand))
    return Status(node, sdk, outdated=outdated)


async def _node_at_hand(asked: Asked, environ: Mapping[str, str], cwd: Path, prefix: Path | None) -> bool:
    """Whether an install would find a Node.js and an npm that it can use."""
    found = find_toolchain(environ, untrusted_directories(asked, cwd), prefix)
    if found is None or found.npm is None:
        return False
    version = await node_version(found.node, environ)
    return version is not None and node_is_supported(version)


async def _node(asked: Asked, environ: Mapping[str, str], cwd: Path, installed: Installed | None) -> Part:
    try:
        node = find_node(asked, environ, cwd, installed)
    except RuntimeProblem as problem:
        return Part(version=problem.found, code=problem.code)
    version = await node_version(node.program, environ)
    if version is None:
        return Part(source=node.source, code=RuntimeCode.NODE_MISSING)
    supported = node_is_supported(version)
    code = RuntimeCode.OK if supported else RuntimeCode.NODE_VERSION_UNSUPPORTED
    # The output of a program is foreign text, so only a version is repeated.
    return Part(version=release_text(version), source=node.source, code=code)


def _sdk(asked: Asked, environ: Mapping[str, str], cwd: Path, installed: Installed | None) -> Part:
    try:
        sdk = find_sdk(asked, environ, cwd, installed)
        find_tools(sdk, installed)
    except RuntimeProblem as problem:
        configured = asked.runtime.sdk is not None
        way = way_out(problem.code, configured=configured, node_at_hand=False)
        return Part(version=problem.found, code=problem.code, way_out=way)
    return Part(version=sdk.version, source=sdk.source)
