"""What each code means to the operator, and what to do about it, in fixed sentences. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pi_session_mcp.setup.result import Relation, SetupCode


@dataclass(frozen=True, slots=True)
class Words:
    """`meaning` says what was found or done. `remedy` says what to do next, if there is something to do."""

    meaning: str
    remedy: str | None = None


WORDS: Final[dict[SetupCode, Words]] = {
    SetupCode.TARGET_INVALID: Words(
        "A target is unknown.", "Name a target as client:scope, for example claude-code:user."
    ),
    SetupCode.USAGE_INVALID: Words(
        "An operation is named without a target, or more than one operation is.",
        "Name one operation and at least one target, or nothing to see all targets.",
    ),
    SetupCode.CONFIG_REQUIRED: Words(
        "PI_SESSION_MCP_CONFIG names no configuration and none is at the default place, "
        "or it is at a path that clients cannot show exactly.",
        "Set PI_SESSION_MCP_CONFIG to the configuration's path, without control characters, outer white space and ${. "
        "If there is none, write one with `pi-session-mcp config init`.",
    ),
    SetupCode.PLATFORM_UNSUPPORTED: Words(
        "This operating system is neither Linux nor macOS.", "Register by hand; docs/setup.md says how."
    ),
    SetupCode.OPERATION_INTERRUPTED: Words(
        "The operation was interrupted before this target was done.", "Run the same command again."
    ),
    SetupCode.DOCTOR_FAILED: Words(
        "The doctor found an error, so a server that is registered now would not work.",
        "Run `pi-session-mcp doctor` and do what it says.",
    ),
    SetupCode.RELEASE_UNAVAILABLE: Words(
        "This installation's command or files could not be found, read or told from others.",
        "Reinstall the package, without symbolic links among its files.",
    ),
    SetupCode.INSTALLATION_EPHEMERAL: Words(
        "This installation lies in a temporary directory or in a cache, and would vanish.",
        "Install it to stay, for example with pipx install or uv tool install.",
    ),
    SetupCode.CLIENT_MISSING: Words(
        "The client's program is not on PATH.", "Install the client, or put its directory on PATH."
    ),
    SetupCode.CLIENT_UNSUPPORTED: Words(
        "The client does not offer what we need, or this scope means nothing definite in this directory.",
        "Update the client; run the command at the top of the project; or register by hand as docs/setup.md says.",
    ),
    SetupCode.INSPECT_FAILED: Words(
        "The client gave no answer, or one that is in no form that we know.",
        "Run the client's own `mcp get pi-session-mcp`, and mend what it complains about.",
    ),
    SetupCode.HOME_UNAVAILABLE: Words(
        "HOME, or the client's own variable for its home, is unset, empty or relative.",
        "Set HOME to your home directory, as an absolute path.",
    ),
    SetupCode.CLIENT_HOME_MISSING: Words(
        "The client's own variable for its home (CODEX_HOME, CLAUDE_CONFIG_DIR, COPILOT_HOME) names no directory, and "
        "the client does not make it.",
        "Make that directory, correct the variable, or unset it.",
    ),
    SetupCode.LOCK_BUSY: Words(
        "Another setup, or what is left of one, did not end in time.",
        "Wait for it and run the command again; nothing has to be removed by hand.",
    ),
    SetupCode.FILESYSTEM_UNSUPPORTED: Words(
        "The state directory is on a file system whose locks cannot be trusted.",
        "Keep the state directory on a local file system (XDG_STATE_HOME).",
    ),
    SetupCode.STATE_DIRECTORY_UNSAFE: Words(
        "The state directory, or a directory above it, is not yours alone: somebody else could put something there.",
        "Make it a plain directory of yours with mode 0700, below directories that nobody else can write in, move what "
        "the report says is in the way, and run setup without sudo.",
    ),
    SetupCode.STATE_DIRECTORY_UNAVAILABLE: Words(
        "The state directory cannot be made or written: its file system is read-only or full, a file stands at the "
        "name of a directory, or the permissions do not allow it.",
        "Make it possible to write there, or name another directory of yours with XDG_STATE_HOME.",
    ),
    SetupCode.USER_SCOPE_UNCLEAR: Words(
        "The client would take a project's registration for yours: a project's mark lies above the state directory, "
        "and one in the root directory of this machine.",
        "Move what the report says is in the way out of the root directory, or run setup where it is not there.",
    ),
    SetupCode.OPERATION_FAILED: Words(
        "It cannot be told whether a process of the client has ended, or an unexpected thing went wrong.",
        "Run the same command again; it finishes what was begun.",
    ),
    SetupCode.ABSENT: Words("Nothing is registered here."),
    SetupCode.EQUIVALENT: Words("The registration is as it should be."),
    SetupCode.DIVERGENT: Words(
        "Something else is registered under this name.",
        "Remove it with the client's own command if it is not needed, then run --apply.",
    ),
    SetupCode.ALREADY_EQUIVALENT: Words("The registration was there already, as it should be."),
    SetupCode.DIVERGENCE_REQUIRES_REPLACEMENT: Words(
        "Something else is registered under this name, and it is not replaced.",
        "Remove it with the client's own command if it is not needed, then run --apply again.",
    ),
    SetupCode.REGISTRATION_DISABLED: Words(
        "The registration is as it should be, and the client was told not to start it.",
        "Enable it in the client, if you want to use it there.",
    ),
    SetupCode.SETTINGS_WOULD_BE_LOST: Words(
        "The registration has settings of yours, such as time limits or variables, that this client cannot keep when "
        "another path is registered.",
        "Note them, run --remove and --apply, and set them again.",
    ),
    SetupCode.REGISTRATION_FINGERPRINT_MISMATCH: Words(
        "The registration is ours, but for another path of this program or of the configuration.",
        "Run --rebind to register the present paths.",
    ),
    SetupCode.RELEASE_BINDING_MISMATCH: Words(
        "The registration is ours, and this program's files have changed since.",
        "If you upgraded it, run --rebind; if not, find out who changed them.",
    ),
    SetupCode.APPLIED: Words(
        "The registration was made and seen to be there.", "Run --verify, then restart the client."
    ),
    SetupCode.PENDING_RECOVERED: Words("A registration that was interrupted earlier is complete now."),
    SetupCode.REBOUND: Words(
        "The registration belongs to the present installation now.", "Run --verify, then restart the client."
    ),
    SetupCode.OWNERSHIP_UNAVAILABLE: Words(
        "No record says that this registration is ours, or the records cannot be read or written.",
        "Remove the registration with the client's own command, or see docs/setup.md about damaged records.",
    ),
    SetupCode.APPLY_FAILED_RECOVERY_PENDING: Words(
        "The client did not do what it was told, or could not be seen to.", "Run the same command again."
    ),
    SetupCode.REGISTRATION_NOT_EQUIVALENT: Words(
        "The registration is not there, or not as it should be.", "Run --dry-run to see what is there."
    ),
    SetupCode.MCP_VERIFIED: Words(
        "The registered command started and answered as our server.",
        "Restart the client, and ask it to let Pi do something in one of your workspaces.",
    ),
    SetupCode.MCP_UNSUPPORTED: Words(
        "The registered command answered, and not as this version of our server does.", "Reinstall, then run --rebind."
    ),
    SetupCode.MCP_TIMEOUT: Words(
        "The registered command did not answer in time.", "Run `pi-session-mcp doctor`, then --verify again."
    ),
    SetupCode.MCP_FAILED: Words(
        "The registered command did not start, broke off, or did not end well.",
        "Run `pi-session-mcp doctor`, then --verify again.",
    ),
    SetupCode.ROLLED_BACK: Words("The registration is gone, and its record too."),
    SetupCode.REMOVED: Words("The registration is gone, and its record too."),
    SetupCode.OWNERSHIP_DIVERGED: Words(
        "The registration is gone or was changed since we made it.",
        "Run --remove to drop the record of one that is gone; remove a changed one with the client's own command.",
    ),
    SetupCode.CLEANUP_FAILED: Words(
        "The client did not remove the registration, or could not be seen to.", "Run the same command again."
    ),
}

CONFIGURATIONS: Final = {
    Relation.SAME: "the one that this command reads",
    Relation.ANOTHER: "another one than this command reads",
}
REGISTER: Final = "Register with: pi-session-mcp setup --apply TARGET"
APPLY_REGISTERS: Final = "Run --apply to have the client register this program here."
REWRITES_ITS_FILE: Final = (
    "Codex writes its configuration file anew: other registrations stay, comments among them may not."
)
