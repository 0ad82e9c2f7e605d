"""`--install-completion` and `--show-completion`: writes or prints the scripts of `completion`."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.cli.completion import SCRIPTS
from pi_session_mcp.cli.nearest import nearest
from pi_session_mcp.cli.outcome import Answer, Document, Facts, Json, Line, Mark, Misuse, Outcome, Show, always
from pi_session_mcp.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.cli.grammar import Node
    from pi_session_mcp.cli.outcome import Command

SHELLS: Final = tuple(sorted(SCRIPTS))

_ZSH_LINE: Final = "fpath+=~/.zfunc; autoload -Uz compinit; compinit"
"""The very line that other programs made with Typer add, so that one line serves all of them."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a shell finds a script: the file, and the line that its start file needs for that, if any."""

    script: Path
    start_file: Path | None = None
    line: str = ""


def show(shell: str, root: Node) -> Command:
    """The command that prints the script for `shell`."""
    if shell not in SCRIPTS:
        return always(_unknown_shell(shell))
    _, write = SCRIPTS[shell]
    return always(Document(write(root), "completion", ExitStatus.OK))


def install(root: Node) -> Command:
    """The command that installs the script for the shell that it is run from."""

    def command(_show: Show) -> Answer:
        shell = _current_shell(os.environ)
        return _unknown_shell() if shell not in SCRIPTS else _installed(shell, root)

    return command


def _installed(shell: str, root: Node) -> Answer:
    from pi_session_mcp.platform.paths import home_directory

    home = home_directory(os.environ)
    if home is None:
        return _failed("home_missing", "Set HOME to your home directory.")
    place = _place(shell, home, os.environ)
    _, write = SCRIPTS[shell]
    try:
        changed = _put(place, write(root))
    except OSError:
        return _failed(
            "completion_not_installed", f"Run `pi-session-mcp --show-completion {shell}` and save its output."
        )
    line = Line(Mark.OK, "installed", f"Completion for {shell} is installed. Open a new shell to use it.")
    rows = (("start file", f"one line was added to {changed}"),) if changed else ()
    members: dict[str, Json] = {"shell": shell, "startFileChanged": changed is not None}
    return Outcome(ExitStatus.OK, members, (line, Facts(rows)) if rows else (line,))


def _failed(code: str, remedy: str) -> Outcome:
    blocks = (Line(Mark.FAILED, "failed", code), Facts((("do", remedy),)))
    return Outcome(ExitStatus.FAILURE, {"code": code, "remediation": remedy}, blocks)


def _unknown_shell(name: str = "") -> Misuse:
    message = "There is no completion for this shell. Name one of those below."
    return Misuse(message, (("shells", SHELLS),), nearest=nearest(name, SHELLS))


def _place(shell: str, home: Path, environ: Mapping[str, str]) -> _Place:
    name, _ = SCRIPTS[shell]
    if shell == "fish":
        return _Place(_base(environ, "XDG_CONFIG_HOME", home / ".config") / "fish" / "completions" / name)
    if shell == "zsh":
        return _Place(home / ".zfunc" / name, _base(environ, "ZDOTDIR", home) / ".zshrc", _ZSH_LINE)
    data = _base(environ, "XDG_DATA_HOME", home / ".local" / "share")
    script = data / "bash-completion" / "completions" / "pi-session-mcp"
    # With the bash-completion package the file is enough; without it, bash needs the line.
    quoted = shlex.quote(str(script))
    return _Place(script, home / ".bashrc", f"[ -r {quoted} ] && . {quoted}")


def _base(environ: Mapping[str, str], variable: str, otherwise: Path) -> Path:
    named = environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else otherwise


def _put(place: _Place, text: str) -> str | None:
    """Write the script, and the line in the start file. The name of that file if it was changed. Raises `OSError`."""
    from pi_session_mcp.platform.files import write_durably

    place.script.parent.mkdir(parents=True, exist_ok=True)
    write_durably(place.script, text.encode(), mode=0o644)
    if place.start_file is None or not _append_once(place.start_file, place.line):
        return None
    return place.start_file.name


def _append_once(start_file: Path, line: str) -> bool:
    """Whether `line` had to be added. The file belongs to the person and may be a link, so it is only appended to."""
    before = start_file.read_bytes() if start_file.exists() else b""
    if line.encode() in before.splitlines():
        return False
    gap = b"" if not before or before.endswith(b"\n") else b"\n"
    with start_file.open("ab") as file:
        file.write(gap + line.encode() + b"\n")
    return True


def _current_shell(environ: Mapping[str, str]) -> str:
    """The name of the shell that started this program, or else of the login shell."""
    try:
        from shellingham import ShellDetectionFailure, detect_shell  # type: ignore[import-untyped]  # Typer brings it
    except ImportError:
        return Path(environ.get("SHELL", "")).name
    try:
        name: str = detect_shell()[0]
    except (ShellDetectionFailure, RuntimeError, OSError):
        return Path(environ.get("SHELL", "")).name
    return name
