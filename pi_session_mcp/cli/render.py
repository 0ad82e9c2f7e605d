"""Turns an answer into text: for a person with Rich, for a program as one JSON object. Pure.

Rich is imported only where a person's text is laid out, since it costs more than most commands do. Foreign text
becomes `Text`, never markup, and control characters are shown as `?`.
"""

from __future__ import annotations

import json
import unicodedata
from io import StringIO
from typing import TYPE_CHECKING, Final, assert_never

from pi_session_mcp.cli.outcome import (
    SCHEMA_VERSION,
    Answer,
    Block,
    Document,
    Facts,
    Json,
    Line,
    Mark,
    Misuse,
    Outcome,
    Prose,
    Verbatim,
)
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.text import Text

    from pi_session_mcp.cli.streams import Form

_SYMBOLS: Final = {Mark.OK: "✓", Mark.WARNING: "!", Mark.FAILED: "✗", Mark.NOTE: "·"}
_PLAIN_SYMBOLS: Final = {Mark.OK: "+", Mark.WARNING: "!", Mark.FAILED: "x", Mark.NOTE: "-"}
_STYLES: Final = {Mark.OK: "green", Mark.WARNING: "yellow", Mark.FAILED: "red", Mark.NOTE: "dim"}
_DIFF_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_WORD_COLUMNS: Final = 11
_MAX_NAMES: Final = 60


def exit_status_of(answer: Answer) -> ExitStatus:
    """The exit status of `answer`."""
    match answer:
        case Outcome() | Document():
            return answer.exit_status
        case Misuse():
            return ExitStatus.MISUSE
    assert_never(answer)


def json_report(answer: Answer) -> str:
    """`answer` as one JSON object on one line, in ASCII, with a line end."""
    status = exit_status_of(answer)
    return _envelope(status, _members(answer))


def failure_report(status: ExitStatus, code: str) -> str:
    """The JSON object for a command that has no answer."""
    return _envelope(status, {"code": code})


def human_text(blocks: Iterable[Block], form: Form) -> str:
    """`blocks` as text for a person, never wider than the form's columns."""
    from rich.console import Console

    page = StringIO()
    console = Console(
        file=page,
        width=form.columns,
        color_system="standard" if form.colour else None,
        force_terminal=form.colour,
        no_color=not form.colour,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for block in blocks:
        console.print(_renderable(block, form))
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def misuse_text(misuse: Misuse, form: Form) -> str:
    """What a person reads when the command line was not understood."""
    meant = (("did you mean", " or ".join(misuse.nearest)),) if misuse.nearest else ()
    rows = (*meant, *((title, _listed(names)) for title, names in misuse.valid))
    blocks: tuple[Block, ...] = (Line(Mark.FAILED, "misuse", misuse.message),)
    return human_text((*blocks, Facts(rows)) if rows else blocks, form)


def _listed(names: tuple[str, ...]) -> str:
    """As many names as a person would read. The report has all of them."""
    hidden = len(names) - len(names[:_MAX_NAMES])
    return ", ".join(names[:_MAX_NAMES]) + (f" and {hidden} more (--json lists all)" if hidden else "")


def visible(text: str, *, keep: str = "") -> str:
    """`text` with a `?` for each character that is invisible or could control a terminal, but for those in `keep`."""
    return "".join("?" if unicodedata.category(c) in _HIDDEN and c not in keep else c for c in text)


def _members(answer: Answer) -> dict[str, Json]:
    match answer:
        case Outcome(members=members):
            return dict(members)
        case Document(text=text, member=member, reported=reported):
            return {member: text if reported is None else reported}
        case Misuse(message=message, valid=valid, code=code, nearest=nearest):
            told: dict[str, Json] = {"nearest": list(nearest)} if nearest else {}
            valid_names = {title: list(names) for title, names in valid}
            return {"code": code, "message": message, **told, "valid": valid_names}
    assert_never(answer)


def _envelope(status: ExitStatus, members: dict[str, Json]) -> str:
    report: dict[str, Json] = {"schemaVersion": SCHEMA_VERSION, "ok": status is ExitStatus.OK, "exitCode": int(status)}
    return json.dumps(report | members, allow_nan=False) + "\n"


def _renderable(block: Block, form: Form) -> RenderableType:
    match block:
        case Line():
            return _line(block, form)
        case Facts(rows=rows):
            return _facts(rows)
        case Verbatim(text=text):
            return _verbatim(text)
        case Prose(text=text):
            return _text(text)
    assert_never(block)


def _line(line: Line, form: Form) -> RenderableType:
    from rich.table import Table

    symbols = _SYMBOLS if form.unicode else _PLAIN_SYMBOLS
    grid = Table.grid(padding=(0, 1), expand=False)
    grid.add_column(width=1)
    grid.add_column(min_width=_WORD_COLUMNS, no_wrap=True)
    grid.add_column(overflow="fold")
    style = _STYLES[line.mark]
    grid.add_row(_text(symbols[line.mark], style), _text(line.word, style), _text(line.text))
    return grid


def _facts(rows: tuple[tuple[str, str], ...]) -> RenderableType:
    from rich.table import Table

    grid = Table.grid(padding=(0, 1), expand=False)
    grid.add_column(width=1)
    grid.add_column(min_width=_WORD_COLUMNS, overflow="fold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row("", _text(name, "dim"), _text(value))
    return grid


def _verbatim(text: str) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding

    lines = (_text(line, _DIFF_STYLES.get(line[:1], "")) for line in text.expandtabs(4).splitlines())
    return Padding(Group(*lines), (0, 0, 0, 2))


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(visible(text), style=style, overflow="fold")
