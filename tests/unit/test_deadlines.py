"""The table of deadlines is the only place of the package that names a duration, and every one is explained."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.deadlines import DEADLINES, Deadlines
from tools import waits

if TYPE_CHECKING:
    from collections.abc import Iterator

ELSEWHERE = {
    "bridge/judge_program.py: CPU_S": "time of a processor, in a program that runs without the package",
    "runtime/compile_cache.py: BETWEEN_S": "the age of a note, not a wait",
    "runtime/compile_cache.py: KEPT_S": "the age of a file, not a wait",
    "server/wire/opening.py: _SWITCH_S": "how often the interpreter changes threads, not a wait",
    **{f"{found.place}: {found.name}": "runs without the package" for found in waits.of_standalone_programs()},
}
NAMES_A_DURATION = re.compile(r"(^|_)(s|ms|seconds|timeout|delay|deadline)$", re.IGNORECASE)
WAITS = {"sleep", "fail_after", "move_on_after", "wait", "join", "wait_for", "settimeout"}


def durations(source: str) -> Iterator[str]:
    """Each name that gets a number of seconds or milliseconds in a source, and each wait that is given a number."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from (name for target in targets if (name := _name(target)) and _names(name, value))
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _names(name := _name(target), value):
                yield name
            case ast.arguments(args=args, posonlyargs=first, kwonlyargs=last, defaults=defaults, kw_defaults=keyword):
                given = [
                    *zip(reversed([*first, *args]), reversed(defaults), strict=False),
                    *zip(last, keyword, strict=True),
                ]
                yield from (one.arg for one, value in given if _names(one.arg, value))
            case ast.Call(func=func, args=args, keywords=keywords):
                yield from (one.arg for one in keywords if one.arg and _names(one.arg, one.value))
                if _name(func) in WAITS and any(map(_is_number, args)):
                    yield _name(func)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _names(name: str, value: ast.expr | None) -> bool:
    return bool(NAMES_A_DURATION.search(name)) and _is_number(value)


def _is_number(value: ast.expr | None) -> bool:
    """Whether an expression is a number other than zero, or is made of numbers and conditions only."""
    match value:
        case ast.Constant(value=int() | float() as number):
            return number != 0 and not isinstance(number, bool)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.IfExp(body=body, orelse=otherwise):
            return _is_number(body) or _is_number(otherwise)
    return False


def test_no_other_module_of_the_package_names_a_duration() -> None:
    found = {
        f"{path.relative_to(waits.PRODUCT)}: {name}"
        for path in waits.PRODUCT.rglob("*.py")
        if path != waits.PRODUCT / "deadlines.py"
        for name in durations(path.read_text(encoding="utf-8"))
    }

    assert found == {one for one in ELSEWHERE if ".mjs" not in one}


@pytest.mark.parametrize(
    "source",
    [
        "GRACE_S: Final = 4.0",
        "GRACE_S = 2 * 60",
        "PAUSE_S = 0.01 if LINUX else 0.05",
        "class Bounds:\n    start_s: float = 10.0",
        "def ask(*, within_s: float = 5.0) -> None: ...",
        "def ask(first: int, timeout: float = 5) -> None: ...",
        "ask(within_s=5)",
        "self._grace_s = 4",
        "anyio.sleep(0.1)",
        "with move_on_after(5): pass",
    ],
)
def test_a_new_duration_elsewhere_is_seen(source: str) -> None:
    assert list(durations(source))


@pytest.mark.parametrize(
    "source", ["self._grace_s = 0.0", "sleep(0)", "within_s = DEADLINES.abort_s / 2", "timeout_s = wait_ms / 1000"]
)
def test_no_wait_at_all_and_what_follows_from_the_table_are_no_durations_of_their_own(source: str) -> None:
    assert not list(durations(source))


def test_the_scripts_of_the_host_wait_for_named_durations_only() -> None:
    unnamed = re.compile(r"(?:setTimeout\((?:[^()]|\([^()]*\))*, |AbortSignal\.timeout\(|\bwait\()\d[\d_]*[,)]")

    assert unnamed.search("setTimeout(() => exit(status), 3000)")
    assert [path.name for path in waits.HOST.glob("*.mjs") if unnamed.search(path.read_text(encoding="utf-8"))] == []


def test_every_duration_says_what_it_bounds() -> None:
    found = [*waits.of_the_package(), *waits.of_standalone_programs()]

    assert [one for one in found if not one.says or not one.bounds_s or min(one.bounds_s) <= 0] == []


def test_every_deadline_is_read_by_the_program() -> None:
    sources = [path.read_text(encoding="utf-8") for path in waits.PRODUCT.rglob("*.py")]
    read = {name for source in sources for name in re.findall(r"(?:deadlines|DEADLINES)\.(\w+)", source)}

    assert set(Deadlines._fields) - read == set()


def test_an_end_that_waits_for_others_has_room_for_them() -> None:
    """Each process is awaited for longer than it takes to end by itself."""
    assert DEADLINES.mcp_close_s > 2 * DEADLINES.mcp_grace_s
    assert DEADLINES.close_s > DEADLINES.mcp_close_s
    assert DEADLINES.process_shutdown_s > DEADLINES.registry_shutdown_s > DEADLINES.close_s
    assert DEADLINES.demo_end_s > DEADLINES.process_shutdown_s
    assert DEADLINES.verify_s > DEADLINES.process_shutdown_s
    (shutdown,) = (one for one in waits.of_standalone_programs() if one.name == "SHUTDOWN_MS")
    assert shutdown.bounds_s < (DEADLINES.host_grace_s,)
