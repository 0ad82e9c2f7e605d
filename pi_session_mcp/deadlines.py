"""Every bound on waiting, in one table. Pure.

Seconds. A test hands the part that it tries a table of its own. No other module of the package names a duration. The
programs that run without the package have theirs at the top: the keeper's, the judge's and the Pi host's. All of them
are printed in `docs/limits.md`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Deadlines(NamedTuple):
    """How long each wait may take.

    A named tuple, because the handshake of `serve` reads it: importing `dataclasses` would make that 5 ms longer.
    """

    # The server's process and its connection.
    process_shutdown_s: float = 15.0
    """From the signal or the end of input until the process exits, in every case."""
    last_words_s: float = 1.0
    """The client may take this long to read the last answers."""
    judgement_after_s: float = 0.05
    """The configuration is judged once the tools were listed, or after this time. Sooner it would delay answers."""
    report_interval_s: float = 1.0
    """At most one line about foreign output, and one about broken messages, in this time."""
    call_wait_s: float = 50.0
    """The longest wait that a call may ask for (`waitMs`): below the request limits that clients are known to have."""
    progress_interval_s: float = 1.0
    """At most one progress notification in this time."""

    # Sessions and turns. A wait that takes longer is answered with its stable code.
    check_step_s: float = 5.0
    """One authentication or catalog step during a session's creation."""
    creation_step_s: float = 10.0
    """One SDK step of creation: services, session, bind."""
    preflight_s: float = 5.0
    """From handing a prompt to Pi until Pi accepts or rejects it."""
    abort_s: float = 5.0
    """For each caller of an abort."""
    close_s: float = 5.0
    """Abort and cleanup of one session."""
    registry_shutdown_s: float = 12.0
    """All sessions, when the server ends."""

    # Pi hosts.
    host_start_s: float = 10.0
    """From the start of a host until it has greeted."""
    host_ping_s: float = 5.0
    """A host that owes an answer and does not answer a ping for this long is ended."""
    host_idle_s: float = 600.0
    """A host without sessions ends after this long."""
    host_grace_s: float = 4.0
    """A host may take this long to dispose of its sessions once its channel has closed."""
    warm_after_s: float = 0.25
    """A host is warmed this long after `pi_capabilities_get` was answered."""

    # External MCP servers and what judges their schemas.
    mcp_startup_s: float = 10.0
    """All external MCP servers of one session, together."""
    mcp_call_s: float = 30.0
    """One call of a granted tool."""
    mcp_close_s: float = 4.5
    """All external MCP servers of one session end within this time, as a part of its close."""
    mcp_grace_s: float = 2.0
    """After the end of its input, and again after TERM, a server may take this long to end."""
    mcp_judge_s: float = 10.0
    """One judgement of arguments or of a schema, by the clock; its processor time has a bound of its own."""
    mcp_judge_idle_s: float = 60.0
    """The judge's process ends after this long without a question. The next question starts another one."""

    # Keepers, seen from the process that starts them.
    keeper_patience_s: float = 4.0
    """A keeper that is to end may take this long after the grace of its command. Then it is killed."""
    keeper_insist_s: float = 1.0
    """A keeper that is to end is told to continue this often: any program of this user may stop it again."""
    end_of_file_s: float = 1.0
    """For the end of a command's output after its keeper: a process out of its sight may hold it (macOS)."""

    # `runtime install`, and programs that are asked for their version.
    version_s: float = 5.0
    """A program that is asked for its version answers within this time, or has none."""
    install_s: float = 900.0
    """One run of npm."""
    install_load_s: float = 60.0
    """Node loads an installed Pi SDK within this time, or the SDK counts as damaged."""
    install_lock_s: float = 60.0
    """For another install that removes what killed installs have left."""
    install_lock_retry_s: float = 0.1
    """Between two attempts to take the lock of the installs: the kernel has no bounded wait for it."""

    # `doctor`.
    doctor_pi_s: float = 20.0
    """Node loads Pi and answers all questions of the doctor within this time."""

    # `setup`.
    setup_lock_s: float = 120.0
    """For other setups: long enough for a few that wait for slow clients on a busy machine."""
    setup_lock_retry_s: float = 0.05
    """Between two attempts to take the lock of setups: the kernel can only wait by blocking the thread."""
    setup_command_s: float = 30.0
    """One command of a client."""
    setup_gone_s: float = 20.0
    """A guardian that is to end needs much less, unless another program keeps stopping it. After this it is killed."""
    verify_s: float = 30.0
    """The whole handshake of `--verify`."""
    verify_grace_s: float = 2.0
    """A verified server whose keeper is to end may take this long to end by itself."""

    # `demo`.
    demo_step_s: float = 60.0
    """One step, which takes far less. If it has not happened by then, it counts as not seen."""
    demo_end_s: float = 20.0
    """A server ends itself within `process_shutdown_s`. If it is still there after this time, it is killed."""
    demo_reap_s: float = 5.0
    """For a server that was killed, and for the end of its output."""
    demo_model_s: float = 20.0
    """The scripted model waits this long to be asked, or to be left alone, unless its user says otherwise."""
    demo_glance_s: float = 0.2
    """Between two looks at whether a step is to be cancelled."""


DEADLINES: Final = Deadlines()
"""What the program keeps to."""
