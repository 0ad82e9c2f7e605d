"""The judge of one session: whether schemas of its external tools are usable, and whether arguments keep to them.

A foreign schema can cost any amount of time and memory. So a process of its own applies it, `judge_program` under a
keeper, and that process is ended when it takes too much. Its question has no answer then, and the next question gets
a new process.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.bridge.process import Launch, running_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pi_session_mcp.keeper.child import Child

_PROGRAM: Final = Path(__file__).with_name("judge_program.py")
_IMPORTED: Final = (
    *("pi_session_mcp", "jsonschema", "jsonschema_specifications", "referencing", "attr", "attrs", "rpds"),
    "typing_extensions",
)
"""All that the program imports, directly or through others."""
_DIRECTORY: Final = "/"
_MAX_ANSWER_BYTES: Final = 65_536


@dataclass(slots=True)
class _Question:
    line: bytes
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: list[bool | None] | None = None


class Judge:
    """Owns the process that judges, as long as `run` runs. Everything else may be called from any task.

    A question may take `within_s`. The process ends when it was asked nothing for `idle_s`. The next question starts it
    again.
    """

    def __init__(self, within_s: float, idle_s: float) -> None:
        self._within_s = within_s
        self._idle_s = idle_s
        self._scope = anyio.CancelScope()
        self._questions: deque[_Question] = deque()
        self._asked = anyio.Event()
        self._closed = False
        self.gone = anyio.Event()
        """Set when no process of the judge is alive."""

    # --- for its users -----------------------------------------------------------------------------------------------

    async def is_usable(self, schema: str) -> bool:
        """Whether a schema, as JSON, is valid and describes an object. `False` if that cannot be judged in time."""
        return await self._ask("usable", schema, ()) == [True]

    async def keeps(self, schema: str, *values: str) -> bool | None:
        """Whether every value, as JSON, keeps to a usable schema. `None` if that cannot be judged in time."""
        answers = await self._ask("keeps", schema, values)
        if answers is None or None in answers:
            return None
        return all(answers)

    def close(self) -> None:
        """Begin the end. Callers that wait get no answer. Returns at once; see `gone`."""
        self._scope.cancel()

    async def _ask(self, what: str, schema: str, values: Sequence[str]) -> list[bool | None] | None:
        if self._closed:
            return None
        question = _Question(json.dumps([what, schema, values]).encode() + b"\n")
        self._questions.append(question)
        self._asked.set()
        try:
            await question.done.wait()
        finally:
            with suppress(ValueError):  # its caller has left, so it need not be judged
                self._questions.remove(question)
        return question.answer

    # --- its life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Answer questions until `close`. Nothing is left then. Raises only when cancelled."""
        try:
            with self._scope:
                await self._live()
        finally:
            self._closed = True
            for question in self._questions:
                question.done.set()
            self.gone.set()

    async def _live(self) -> None:
        while True:  # the first process is started before the first question, which need not wait for it then
            try:
                async with running_server(_launch(), grace_s=0) as process:
                    await self._serve(process)
            except OSError:
                await self._wait_for_one()
                self._questions.popleft().done.set()
            await self._wait_for_one()

    async def _serve(self, process: Child) -> None:
        """Answer questions until the process does not answer one, or ends, or is idle for too long."""
        while await self._is_needed(process):
            question = self._questions.popleft()
            try:
                question.answer = await self._answer(process, question.line)
            finally:
                question.done.set()
            if question.answer is None:
                return

    async def _is_needed(self, process: Child) -> bool:
        """Wait for a question. Returns `False` if the process has ended or was idle for too long."""
        async with anyio.create_task_group() as tasks:

            async def end_with_process() -> None:
                await process.over()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_with_process)
            with anyio.move_on_after(self._idle_s):
                await self._wait_for_one()
            asked = bool(self._questions)
            tasks.cancel_scope.cancel()
            return asked
        return False

    async def _wait_for_one(self) -> None:
        while not self._questions:
            self._asked = anyio.Event()
            await self._asked.wait()

    async def _answer(self, process: Child, line: bytes) -> list[bool | None] | None:
        said = b""
        with anyio.move_on_after(self._within_s):
            try:
                await process.write(line)
                while not said.endswith(b"\n") and len(said) < _MAX_ANSWER_BYTES and (chunk := await process.read()):
                    said += chunk
            except OSError:
                return None
        return json.loads(said) if said.endswith(b"\n") else None


def _launch() -> Launch:
    return Launch((sys.executable, "-I", "-S", str(_PROGRAM), *_places()), {}, _DIRECTORY)


def _places() -> list[str]:
    """The directories that the program imports from: those where this process has found the same."""
    found = (find_spec(name) for name in _IMPORTED)
    origins = [(Path(spec.origin), spec.submodule_search_locations) for spec in found if spec and spec.origin]
    return sorted({str(origin.parent if inside is None else origin.parents[1]) for origin, inside in origins})
