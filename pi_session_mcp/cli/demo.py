"""`pi-session-mcp demo`: the main job, end to end, offline."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.options import JsonOption
from pi_session_mcp.cli.outcome import Answer, Block, Command, Facts, Json, Line, Mark, Outcome, Prose, Show, Verbatim
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from pi_session_mcp.demo.report import DemoReport, DemoStep

HELP: Final = """See the main job work on this machine.

No credentials and no network are needed. The real server, the real Pi SDK and a scripted model run the eight tools in
a throw-away workspace, step by step. Nothing outside a temporary directory is touched.

\b
Example:
  pi-session-mcp demo
"""


def demo(*, _json: JsonOption = False) -> Command:
    """The parsed command."""
    return _run


def _run(show: Show) -> Answer:
    show.block(Prose("A client, the server, the Pi SDK and a scripted model, all on this machine."))
    with show.working("Loading the client"):
        from pi_session_mcp.demo.run import run
    with ExitStack() as working:

        def begin(name: str) -> None:
            working.enter_context(show.working(name))

        def end(step: DemoStep) -> None:
            working.close()  # otherwise the spinner and the step write over each other
            _show_step(show, step)

        return _outcome(run(end, begin))


def _show_step(show: Show, step: DemoStep) -> None:
    for block in _blocks(step):
        show.block(block)


def _outcome(report: DemoReport) -> Outcome:
    """A success only if there were steps and each of them was seen to happen."""
    seen = sum(step.ok for step in report.steps)
    ok = 0 < len(report.steps) == seen
    if ok:
        line = Line(Mark.OK, "done", f"All {seen} steps were seen to happen.")
    else:
        line = Line(Mark.FAILED, "failed", f"{len(report.steps) - seen} of {len(report.steps)} steps failed.")
    status = ExitStatus.OK if ok else ExitStatus.FAILURE
    following = Facts((("next", "Run `pi-session-mcp doctor`."),))
    return Outcome(status, {"steps": [_member(step) for step in report.steps]}, (line, following))


def _blocks(step: DemoStep) -> tuple[Block, ...]:
    mark, word = (Mark.OK, "ok") if step.ok else (Mark.FAILED, "failed")
    line = Line(mark, word, f"{step.name} ({step.ms} ms)")
    return (line, Verbatim("\n".join(step.detail))) if step.detail else (line,)


def _member(step: DemoStep) -> Json:
    return {"name": step.name, "ok": step.ok, "ms": step.ms, "detail": list(step.detail)}
