"""The steps of a session's creation, each with its bound and with what its failure is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.extensions.tools import ExtensionTool, repeated
from pi_session_mcp.host.client import HostFailed
from pi_session_mcp.host.protocol import (
    Bind,
    BindResult,
    Check,
    Grant,
    Load,
    LoadResult,
    Open,
    OpenResult,
    RegisteredTool,
)
from pi_session_mcp.host.selection import CHECKS
from pi_session_mcp.platform.text import utf8_text
from pi_session_mcp.sessions.hosted.reading import workspace_unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_session_mcp.bridge.catalog import GrantedTool
    from pi_session_mcp.config.model import ExecutionProfile
    from pi_session_mcp.deadlines import Deadlines
    from pi_session_mcp.sessions.hosted.hosted_session import HostedSession
    from pi_session_mcp.sessions.hosted.pinned import PinnedExtensions
    from pi_session_mcp.sessions.ports import SessionSpec


async def load(
    session: HostedSession, spec: SessionSpec, extensions: PinnedExtensions, deadlines: Deadlines
) -> tuple[ExtensionTool, ...]:
    """Make the session's runtime and resources, load its extensions, and return the tools that they register."""
    if extensions:
        return await _load_extensions(session, spec, extensions, deadlines)
    try:
        loaded = await session.ask(_load_request(session, spec), LoadResult, within_s=deadlines.creation_step_s)
    except TimeoutError:
        raise Refusal(Code.PI_SESSION_CREATION_FAILED, stage=Stage.RESOURCE_LOADER) from None
    except HostFailed as failure:
        _refuse_world(failure)
        raise Refusal(Code.PI_SESSION_CREATION_FAILED, stage=Stage.RESOURCE_LOADER) from None
    session.left_out = loaded.leftOut
    return ()


async def _load_extensions(
    session: HostedSession, spec: SessionSpec, extensions: PinnedExtensions, deadlines: Deadlines
) -> tuple[ExtensionTool, ...]:
    request = _load_request(session, spec, extensions)
    loaded: LoadResult | None = None
    try:
        loaded = await session.ask(request, LoadResult, within_s=deadlines.creation_step_s, runs_extensions=True)
    except TimeoutError:
        # Nothing is open yet that could be disposed of, and the code that hangs would not let us.
        session.end_host()
        raise extensions.refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_LOAD) from None
    except HostFailed as failure:
        _refuse_world(failure)
    # Before its outcome is judged: what failed may be a version that is not pinned.
    await extensions.confirm_unchanged(within_s=deadlines.check_step_s)
    session.left_out = loaded.leftOut if loaded else ()
    return _registered(loaded, extensions)


def _registered(loaded: LoadResult | None, extensions: PinnedExtensions) -> tuple[ExtensionTool, ...]:
    """The registered tools, if every entry has loaded. Raises `Refusal`.

    Pi reports a tool that two extensions have as an error of loading; that is a conflict and is judged as one later.
    """
    if loaded is None:
        raise extensions.refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_LOAD)
    tools = extension_tools(loaded.tools)
    if loaded.extensions != len(extensions.entries) or loaded.errors > repeated(tools):
        raise extensions.refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_LOAD, entries=loaded.failed)
    return tools


async def check(session: HostedSession, profile: ExecutionProfile, deadlines: Deadlines) -> None:
    """Ask about the provider and the model, all questions in one request.

    Raises `Refusal` for the first question whose answer is no, or does not come within its own bound.
    """
    request = Check(session=session.key, steps=[step.step for step in CHECKS], selection=profile.selection)
    answered, found = await session.check(request, step_s=deadlines.check_step_s)
    if answered < len(CHECKS):
        step = CHECKS[answered]
        raise Refusal(step.no if found is False else step.failed, stage=step.stage)


async def open_session(
    session: HostedSession,
    profile: ExecutionProfile,
    tools: Sequence[str],
    granted: Sequence[GrantedTool],
    deadlines: Deadlines,
) -> OpenResult:
    """Create the session in Pi with exactly these tools, `granted` among them."""
    request = Open(
        session=session.key,
        selection=profile.selection,
        tools=list(tools),
        grants=[Grant(name=one.exposed, description=one.description, parameters=one.schema) for one in granted],
    )
    try:
        return await session.ask(
            request, OpenResult, within_s=deadlines.creation_step_s, runs_extensions=session.own_host
        )
    except (TimeoutError, HostFailed):
        raise Refusal(Code.PI_SESSION_CREATION_FAILED, stage=Stage.CREATE_SESSION) from None


async def bind(session: HostedSession, extensions: PinnedExtensions, deadlines: Deadlines) -> BindResult:
    """Bind the extensions, which starts the session for them, once."""
    try:
        return await session.ask(
            Bind(session=session.key), BindResult, within_s=deadlines.creation_step_s, runs_extensions=True
        )
    except (TimeoutError, HostFailed):
        raise extensions.refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_BIND) from None


def extension_tools(registered: Sequence[RegisteredTool]) -> tuple[ExtensionTool, ...]:
    """The tools in the words of `extensions.tools`."""
    return tuple(ExtensionTool(tool.name, tool.entry) for tool in registered)


def _load_request(session: HostedSession, spec: SessionSpec, extensions: PinnedExtensions | None = None) -> Load:
    entries = [utf8_text(path) for path in extensions.entries] if extensions else []
    if extensions is not None and None in entries:
        raise extensions.refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_LOAD, entries=[entries.index(None)])
    cwd = utf8_text(spec.directory)
    if cwd is None:
        raise workspace_unavailable()
    return Load(
        session=session.key, cwd=cwd, fileAccess=spec.profile.file_access, entries=[entry for entry in entries if entry]
    )


def _refuse_world(failure: HostFailed) -> None:
    """Raise `Refusal` for what failed outside of Pi, and of any extension."""
    if failure.code == "workspace":
        raise workspace_unavailable() from None
    if failure.code == "pi_configuration":
        raise Refusal(Code.PI_CONFIGURATION_INVALID, stage=Stage.RUNTIME, reason=failure.reason) from None
    if failure.code == "proxy":
        raise Refusal(Code.PROXY_INVALID, stage=Stage.RUNTIME) from None
