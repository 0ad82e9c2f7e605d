"""Whether what was created is what was configured. Decides on what a host has reported."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.extensions.tools import first_conflict
from pi_session_mcp.host.selection import level_refusal
from pi_session_mcp.sessions.hosted.steps import extension_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_session_mcp.config.model import ExecutionProfile
    from pi_session_mcp.extensions.tools import ExtensionTool
    from pi_session_mcp.host.protocol import BindResult, OpenResult
    from pi_session_mcp.sessions.hosted.pinned import PinnedExtensions
    from pi_session_mcp.terms.selection import Selection


def refuse_conflict(registered: Sequence[ExtensionTool], granted: Sequence[str], extensions: PinnedExtensions) -> None:
    """Raise `Refusal` if an extension has registered a tool whose name is unsafe or taken."""
    conflict = first_conflict(registered, granted)
    if conflict is not None:
        raise extensions.refusal(Code.EXTENSION_TOOL_CONFLICT, Stage.EXTENSION_LOAD, entries=[conflict.owner])


def verified(
    profile: ExecutionProfile,
    tools: Sequence[str],
    created: OpenResult | BindResult,
    *,
    may_narrow: bool,
    granted: Sequence[str] = (),
) -> Selection:
    """What was created, if it is what was configured. Raises `Refusal`.

    The active tools are exactly `tools`, `granted` among them, or with `may_narrow` some of them: an extension may
    deactivate tools.
    """
    wanted, made = profile.selection, created.selection
    level = level_refusal(wanted.thinking_level, made.thinking_level)
    if level is not None:
        raise Refusal(level, stage=Stage.POSTCHECK)
    active, allowed = tuple(created.activeTools), tuple(tools)
    tools_agree = set(active) <= set(allowed) if may_narrow else active == allowed
    if made != wanted:
        raise Refusal(Code.EXECUTION_SELECTION_MISMATCH, stage=Stage.POSTCHECK)
    if not tools_agree:
        only_grants = active == tuple(name for name in allowed if name in active or name not in granted)
        code = Code.EXTERNAL_MCP_ACTIVATION_MISMATCH if only_grants else Code.EXECUTION_SELECTION_MISMATCH
        raise Refusal(code, stage=Stage.POSTCHECK)
    return made


def verified_bound(
    profile: ExecutionProfile,
    tools: Sequence[str],
    bound: BindResult,
    registered: Sequence[ExtensionTool],
    extensions: PinnedExtensions,
) -> Selection:
    """What there is after binding, if the extensions have kept to what they may do. Raises `Refusal`.

    `registered` are their tools from before. A tool that came or went while binding is a conflict, since its name was
    not judged.
    """
    if bound.hookErrors or bound.mcpServers:
        raise extensions.refusal(Code.EXTENSION_LOAD_FAILED, Stage.EXTENSION_BIND, entries=bound.failed)
    now, before = extension_tools(bound.extensionTools), registered
    if changed := list((Counter(now) - Counter(before)) + (Counter(before) - Counter(now))):
        owners = [tool.owner for tool in changed]
        raise extensions.refusal(Code.EXTENSION_TOOL_CONFLICT, Stage.EXTENSION_BIND, entries=owners)
    return verified(profile, tools, bound, may_narrow=True)
