"""Every bound on waiting by its name in the sources: the table of the package, and the programs that run without it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp import deadlines
from pi_session_mcp.deadlines import DEADLINES

if TYPE_CHECKING:
    from collections.abc import Iterator

PRODUCT: Final = Path(__file__).parents[1] / "pi_session_mcp"
STANDALONE: Final = ("platform/processes.py", "keeper/program.py", "keeper/session_command.py")
"""The keeper's programs: Python runs them without the package."""
HOST: Final = PRODUCT / "host" / "js"
NO_WAITS: Final = {
    "commands.mjs: MAX_TIMEOUT_MS": "what Pi takes for a timeout of `bash`",
    "pi_settings.mjs: DEFAULT_IDLE_TIMEOUT_MS": "what Pi takes when there is no setting",
    "pi_settings.mjs: MAX_TIMER_MS": "what a timer of Node's can hold",
}
"""Durations of the host's JavaScript that bound no wait of ours, and what they are."""

_PYTHON_WORDS: Final = re.compile(r"[A-Z_]+_S")
_JAVASCRIPT: Final = re.compile(
    r"^(?:/\*\*(?P<says>(?:(?!\*/).)*)\*/\n)?(?:export )?const (?P<name>[A-Z_]+_MS) = (?P<value>[^;]+);",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Wait:
    """A bound on waiting, where it stands, and what the source says of it."""

    place: str
    name: str
    bounds_s: tuple[float, ...]
    """More than one if it is another on macOS."""
    says: str


def of_the_package() -> Iterator[Wait]:
    """Each field of the table of deadlines, in its order."""
    table = {found.name: found for found in _written(Path(deadlines.__file__))}
    for name, bound_s in DEADLINES._asdict().items():
        yield Wait("deadlines.py", name, (bound_s,), table[name].says)


def of_standalone_programs() -> Iterator[Wait]:
    """Each duration of the keeper's programs and then of the Pi host, in the order of the sources."""
    for program in STANDALONE:
        yield from (found for found in _written(PRODUCT / program) if _PYTHON_WORDS.fullmatch(found.name))
    for script in sorted(HOST.glob("*.mjs")):
        for found in _JAVASCRIPT.finditer(script.read_text(encoding="utf-8")):
            if f"{script.name}: {found['name']}" not in NO_WAITS:
                bound_s = _product(found["value"]) / 1000
                yield Wait(f"host/js/{script.name}", found["name"], (bound_s,), _plain(found["says"]))


def _product(expression: str) -> int:
    """The value of a product of whole numbers as JavaScript writes it."""
    return reduce(lambda product, factor: product * int(factor), expression.split("*"), 1)


def _written(source: Path) -> Iterator[Wait]:
    """Each name of a module or class that is assigned an expression with numbers, and the text below it, if any."""
    place = source.relative_to(PRODUCT).as_posix()
    for parent in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(parent, ast.Module | ast.ClassDef):
            for statement, after in zip(parent.body, [*parent.body[1:], ast.Pass()], strict=True):
                match statement:
                    case (
                        ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                        | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                    ):
                        yield Wait(place, name, tuple(_numbers(value)), _text(after))


def _numbers(expression: ast.expr) -> Iterator[float]:
    for node in ast.walk(expression):
        match node:
            case ast.Constant(value=int() | float() as number):
                yield float(number)


def _text(statement: ast.stmt) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return _plain(text)
    return ""


def _plain(text: str | None) -> str:
    return " ".join((text or "").replace("\n *", "\n").split())
