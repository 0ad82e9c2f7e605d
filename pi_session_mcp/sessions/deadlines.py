"""Every bound on waiting, in one table. Pure.

Seconds. Tests inject a table of their own; nothing else in the program names a duration for these waits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each wait may take before it is answered with its stable code."""

    check_step_s: float = 5.0
    """One authentication or catalog step during a session's creation."""
    creation_step_s: float = 10.0
    """One SDK step of creation: services, session, bind."""
    mcp_startup_s: float = 10.0
    """All external MCP servers of one session, together."""
    mcp_call_s: float = 30.0
    mcp_close_s: float = 4.5
    mcp_judge_s: float = 10.0
    """One judgement of arguments or of a schema, by the clock; its processor time has a bound of its own."""
    mcp_judge_idle_s: float = 60.0
    """The judge's process ends after this long without a question. The next question starts another one."""
    preflight_s: float = 5.0
    """From handing a prompt to Pi until Pi accepts or rejects it."""
    abort_s: float = 5.0
    """For each caller of an abort."""
    close_s: float = 5.0
    """Abort and cleanup of one session."""
    registry_shutdown_s: float = 12.0
    process_shutdown_s: float = 15.0
    """From the signal or the end of input until the process exits, in every case."""
    host_start_s: float = 10.0
    host_ping_s: float = 5.0
    """A host that owes an answer and does not answer a ping for this long is ended."""
    host_idle_s: float = 600.0
    """A host without sessions ends after this long."""
    warm_after_s: float = 0.25
    """A host is warmed this long after `pi_capabilities_get` was answered."""
    progress_interval_s: float = 1.0
    """At most one progress notification in this time."""
