"""`pi-session-mcp setup`: the registration in MCP clients."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Block, Command, Facts, Line, Mark, Misuse, Outcome, Show
from pi_session_mcp.platform.paths import working_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.setup.result import Finding, Operation, Result
    from pi_session_mcp.setup.targets import Target

HELP: Final = """Register with MCP clients, or see what would be done.

Without a target it shows all of them: what is registered where, and whether that uses the configuration that this
command reads. Without an option, or with --dry-run, nothing is changed. A target is client:scope: claude-code:user,
claude-code:project, claude-code:local, codex:user, copilot:user. The scopes project and local are those of the current
directory. The server is registered as pi-session-mcp, with the absolute paths of this installation and of the
configuration. A registration that this command did not make is never replaced or removed. The exit status is 0 when
all is as you asked, and 1 when something is left to do.

\b
Examples:
  pi-session-mcp setup
  pi-session-mcp setup claude-code:user
  pi-session-mcp setup --apply claude-code:user codex:user
  pi-session-mcp setup --verify claude-code:user
  pi-session-mcp setup --rebind claude-code:user
  pi-session-mcp setup --remove claude-code:user
"""

_OPERATIONS: Final = ("dry-run", "apply", "verify", "rollback", "remove", "rebind")
_MARKS: Final = {
    "planned": Mark.OK,
    "ok": Mark.OK,
    "unchanged": Mark.OK,
    "absent": Mark.NOTE,
    "divergent": Mark.WARNING,
    "unsupported": Mark.FAILED,
    "failed": Mark.FAILED,
}


def complete_target(incomplete: str) -> list[str]:
    """The targets that begin with what was typed."""
    from pi_session_mcp.setup.targets import ALL_TARGETS

    return [target.short for target in ALL_TARGETS if target.short.startswith(incomplete)]


def setup(
    *,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            show_default=False,
            help="The places to register in, each as client:scope.",
            autocompletion=complete_target,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is registered and what would be done.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Register where nothing is registered yet.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Start the registered server and talk to it.")] = False,
    rollback: Annotated[bool, typer.Option("--rollback", help="Undo an --apply.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the registration.")] = False,
    rebind: Annotated[
        bool, typer.Option("--rebind", help="Bring the registration up to date after an upgrade or a move.")
    ] = False,
    _json: JsonOption = False,
) -> Command:
    """The parsed command."""
    chosen = dict(zip(_OPERATIONS, (dry_run, apply, verify, rollback, remove, rebind), strict=True))
    asked = [name for name, wanted in chosen.items() if wanted]

    def command(show: Show) -> Answer:
        return _run(asked, targets or [], show)

    return command


def _run(asked: list[str], texts: list[str], show: Show) -> Answer:
    from pi_session_mcp.setup.result import Operation
    from pi_session_mcp.setup.targets import ALL_TARGETS, TargetInvalid, parse

    valid = (("operations", tuple(f"--{name}" for name in _OPERATIONS)),)
    if len(asked) > 1:
        return Misuse("More than one operation is named. Try: pi-session-mcp setup --help", valid, "usage_invalid")
    try:
        targets = [parse(text) for text in texts]
    except TargetInvalid as invalid:
        told = (("targets", invalid.valid),)
        message = "A target is unknown. Try: pi-session-mcp setup --help"
        return Misuse(message, told, "target_invalid", _meant(texts, (*invalid.valid, *valid[0][1])))
    if not targets and not set(asked) <= {"dry-run"}:
        told = (("targets", TargetInvalid().valid),)
        return Misuse("No target is named. Try: pi-session-mcp setup --help", told, "usage_invalid")
    operation = Operation(asked[0] if asked else _OPERATIONS[0]) if targets else Operation.OVERVIEW
    with show.working("Talking to the clients"):
        doctor = _Doctor()
        result = _result(operation, targets or list(ALL_TARGETS), doctor)
    members: dict[str, Any] = {**result.members(), **({"doctor": "errors"} if doctor.warns else {})}
    return Outcome(result.exit_status, members, (*_blocks(result), *doctor.blocks()))


def _meant(texts: list[str], names: tuple[str, ...]) -> tuple[str, ...]:
    """The targets and operations that the first unknown text may stand for."""
    from pi_session_mcp.cli.nearest import nearest
    from pi_session_mcp.setup.targets import is_target

    return next((nearest(text, names) for text in texts if not is_target(text)), ())


def _result(operation: Operation, targets: list[Target], doctor: _Doctor) -> Result:
    from pi_session_mcp.keeper.orphans import adopt_orphans
    from pi_session_mcp.server.catalog import TOOLS
    from pi_session_mcp.setup.inputs import SetupInputs
    from pi_session_mcp.setup.run import run

    adopt_orphans()
    names = frozenset(str(tool["name"]) for tool in TOOLS)
    inputs = SetupInputs(environ=os.environ, cwd=working_directory(), doctor_is_clean=doctor.allows, tools=names)
    return run(operation, targets, inputs)


class _Doctor:
    """The doctor before a registration. A fault of a single workspace, profile or pin is told, and stops nothing."""

    def __init__(self) -> None:
        self.warns = False

    def allows(self) -> bool:
        """Whether no error concerns the whole installation. The operator decides about warnings."""
        from pi_session_mcp.doctor.checks import examine
        from pi_session_mcp.doctor.installation import Installation
        from pi_session_mcp.doctor.subject import Severity

        report = examine(Installation.here())
        self.warns = report.worst is Severity.ERROR and not report.prevents_registration
        return not report.prevents_registration

    def blocks(self) -> Iterator[Block]:
        """What a person is told about it."""
        if self.warns:
            said = "Something is wrong with a workspace, a profile or an extension. Next: pi-session-mcp doctor"
            yield Line(Mark.WARNING, "warning", said)


def _blocks(result: Result) -> Iterator[Block]:
    from pi_session_mcp.setup.messages import REGISTER

    for finding in result.findings:
        yield from _finding(finding, result.operation)
    if result.operation == "overview":
        yield Line(Mark.NOTE, "next", REGISTER)


def _finding(finding: Finding, operation: Operation) -> Iterator[Block]:
    from pi_session_mcp.setup.messages import APPLY_REGISTERS, CONFIGURATIONS, REWRITES_ITS_FILE, WORDS

    words = WORDS[finding.conclusion.code]
    yield Line(
        _MARKS[finding.conclusion.status.value],
        finding.conclusion.status.value,
        f"{finding.target.short}: {words.meaning}",
    )
    rows = [("code", finding.conclusion.code.value)]
    if finding.configuration is not None:
        rows.append(("configuration", CONFIGURATIONS[finding.configuration]))
    if finding.other_scope is not None:
        rows.append(("also in", f"{finding.target.client}:{finding.other_scope}"))
    if finding.in_the_way is not None:
        rows.append(("in the way", finding.in_the_way))
    is_said_once = operation == "overview" and finding.conclusion.status == "absent"
    if words.remedy is not None and not is_said_once:
        rows.append(("do", words.remedy))
    if operation == "dry-run" and finding.conclusion.status == "absent":
        rows.append(("do", APPLY_REGISTERS))
        if finding.target.client == "codex":
            rows.append(("note", REWRITES_ITS_FILE))
    yield Facts(tuple(rows))
