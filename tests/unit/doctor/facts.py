"""The facts of an installation in which nothing is wrong."""

from __future__ import annotations

from typing import Any, Final

from pi_session_mcp.doctor.pi_answer import Profile
from pi_session_mcp.doctor.subject import OK, Subject
from pi_session_mcp.doctor.subjects import (
    agent_directory,
    configuration,
    extensions,
    network,
    node,
    package,
    profiles,
    runtime,
    setup_state,
    system,
    workspaces,
)
from pi_session_mcp.doctor.subjects.extensions import Pinned
from pi_session_mcp.doctor.subjects.network import Network
from pi_session_mcp.doctor.subjects.node import Part
from pi_session_mcp.doctor.subjects.runtime import PiRuntime
from pi_session_mcp.doctor.subjects.workspaces import Workspace
from pi_session_mcp.platform.directory import Directory

FINE: Final[dict[Subject[Any], object]] = {
    system.SYSTEM: system.System(system.MINIMUM_PYTHON, "linux"),
    package.SUBJECT: package.Package(metadata_readable=True),
    node.SUBJECT: Part(OK, configured=False),
    runtime.SDK: PiRuntime(Part(OK, configured=False), loads=True),
    agent_directory.VARIABLE: OK,
    agent_directory.FILES: agent_directory.Files(),
    agent_directory.LOCK: OK,
    network.SUBJECT: Network(proxies=True, proxy_setting=False, kept_back=()),
    configuration.SUBJECT: configuration.Status(OK),
    workspaces.SUBJECT: (Workspace("w", Directory.WRITABLE, left_out=False),),
    profiles.SUBJECT: (Profile("p"),),
    runtime.SEARCH_TOOLS: True,
    system.TEMPORARY_DIRECTORY: True,
    setup_state.SUBJECT: setup_state.SetupState(OK, ()),
    extensions.SUBJECT: (Pinned("p", "ext", OK),),
}
