"""What a foreign schema costs is paid by a process that is ended, and the next question gets another one."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import psutil
import pytest

from pi_session_mcp.bridge.judge import Judge
from tests.support.trees import WAIT_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

IDLE_S = 600.0
INTEGER = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
DEPTH = 30
DOUBLING = json.dumps(
    {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/0"}},
        "$defs": {
            **{str(level): {"allOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2} for level in range(DEPTH)},
            str(DEPTH): {"type": "string"},
        },
    }
)
UNIQUE = json.dumps({"type": "object", "properties": {"n": {"uniqueItems": True}}})
MANY = json.dumps({"n": [{"a": number, "b": {"c": [number]}} for number in range(6000)]})
PATTERN = json.dumps({"type": "object", "properties": {"n": {"pattern": "^(x+x+)+y$"}}})
LIST_OF_OBJECTS = json.dumps({"type": "object", "enum": [{"a": number} for number in range(20_000)]})


@asynccontextmanager
async def judging(within_s: float = WAIT_S, idle_s: float = IDLE_S) -> AsyncIterator[Judge]:
    before = processes()
    judge = Judge(within_s, idle_s)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(judge.run)
        yield judge
        judge.close()
        await judge.gone.wait()
    assert processes() <= before


def processes() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def programs() -> list[psutil.Process]:
    """The processes that judge, without their keepers."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "judge_program.py" in " ".join(one.cmdline()) and "--" not in one.cmdline()]


async def test_schemas_and_arguments_are_judged() -> None:
    async with judging() as judge:
        assert await judge.is_usable(INTEGER)
        assert not await judge.is_usable('{"type": "object", "properties": 7}')
        assert await judge.keeps(INTEGER, '{"n": 7}', '{"n": 8}') is True
        assert await judge.keeps(INTEGER, '{"n": 7}', '{"n": "8"}') is False
        assert await judge.keeps(INTEGER, '{"n": %s}' % ("9" * 5000)) is None


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [(DOUBLING, '{"n": "x"}'), (UNIQUE, MANY), (PATTERN, json.dumps({"n": "x" * 38}))],
    ids=["references that double", "unique objects", "a pattern"],
)
async def test_what_takes_too_long_is_not_judged_and_the_next_question_is(schema: str, arguments: str) -> None:
    async with judging() as judge:
        assert await judge.keeps(schema, arguments) is None
        assert await judge.keeps(INTEGER, '{"n": 7}') is True


async def test_a_schema_that_takes_too_long_is_not_usable() -> None:
    async with judging() as judge:
        assert not await judge.is_usable(json.dumps({**json.loads(LIST_OF_OBJECTS), "uniqueItems": "no boolean"}))
        assert await judge.is_usable(INTEGER)


async def test_others_go_on_while_one_judge_is_at_work() -> None:
    done: list[str] = []

    async def ask(judge: Judge, schema: str, arguments: str, name: str) -> None:
        await judge.keeps(schema, arguments)
        done.append(name)

    async with judging() as busy:
        await busy.is_usable(INTEGER)
        async with judging() as other, anyio.create_task_group() as tasks:
            await other.is_usable(INTEGER)
            tasks.start_soon(ask, busy, DOUBLING, '{"n": "x"}', "slow")
            for _ in range(5):
                await ask(other, INTEGER, '{"n": 1}', "quick")
            busy.close()  # which ends the slow question; by itself it takes as long as a judgement may
    assert done == ["quick"] * 5 + ["slow"]


async def test_a_judge_that_does_not_answer_in_time_is_replaced() -> None:
    async with judging(within_s=0.2) as judge:
        assert await judge.keeps(DOUBLING, '{"n": "x"}') is None
    async with judging() as judge:
        await judge.is_usable(INTEGER)
        (program,) = programs()
        program.kill()
        await anyio.to_thread.run_sync(program.wait, WAIT_S)
        with anyio.fail_after(WAIT_S):
            while await judge.keeps(INTEGER, '{"n": 7}') is None:  # one that was asked as it died has no answer
                pass


async def test_a_judge_that_nobody_asks_ends_and_starts_again_when_it_is_needed() -> None:
    async with judging(idle_s=0.05) as judge:
        assert await judge.is_usable(INTEGER)
        for program in programs():
            await anyio.to_thread.run_sync(program.wait, WAIT_S)
        assert await judge.keeps(INTEGER, '{"n": 7}') is True


async def test_closing_ends_the_judge_in_the_middle_of_a_question() -> None:
    answers: list[Any] = []
    async with judging() as judge, anyio.create_task_group() as tasks:

        async def ask() -> None:
            answers.append(await judge.keeps(DOUBLING, '{"n": "x"}'))

        await judge.is_usable(INTEGER)
        for _ in range(3):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        judge.close()
        await judge.gone.wait()
    assert answers == [None] * 3
    assert not await judge.is_usable(INTEGER)


async def test_a_question_that_nobody_waits_for_is_not_asked() -> None:
    async with judging() as judge:
        await judge.is_usable(INTEGER)
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(judge.keeps, DOUBLING, '{"n": "x"}')
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert await judge.keeps(INTEGER, '{"n": 7}') in {True, None}  # None: the first one was under way already
        assert await judge.keeps(INTEGER, '{"n": 7}') is True


def hard_limits(pid: int) -> dict[str, str]:
    """The limits of a process that it cannot raise, by the kernel's names for them."""
    lines = Path("/proc", str(pid), "limits").read_text().splitlines()
    return {line[:26].strip(): line[26:].split()[1] for line in lines[1:]}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the limits of another process")
async def test_the_judge_may_have_so_much_memory_and_writes_no_file() -> None:
    async with judging() as judge:
        await judge.is_usable(INTEGER)
        (program,) = programs()
        hard = hard_limits(program.pid)
        assert hard["Max address space"] == str(512 * 1024 * 1024)
        assert hard["Max file size"] == "0"
        assert program.environ().keys() <= {"LC_CTYPE"}  # Python's own
        assert program.cwd() == "/"
