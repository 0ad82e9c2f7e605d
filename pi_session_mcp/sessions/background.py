"""Work that goes on after the call that asked for it. The registry's task group owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import anyio

from pi_session_mcp.diagnostics import Diagnostic, Event
from pi_session_mcp.errors import Code

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from anyio.abc import TaskGroup

    from pi_session_mcp.diagnostics import Report


class Cancellable(Protocol):
    """A piece of work that can be told to stop."""

    def cancel(self) -> None:
        """Stop the work at its next wait. Returns at once. Work that has ended stays as it is."""


class Background:
    """A task group whose tasks are not cancelled from outside.

    A running model costs money, so it must be aborted and disposed of even when the request that began it, or the whole
    server, is cancelled. The owner bounds each task, and calls `cancel_all()` when the time for all of them has passed.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._tasks: TaskGroup
        self._scopes: set[anyio.CancelScope] = set()
        self._is_over = False
        self._one_ended = anyio.Event()

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self.cancel_all()
        return await self._tasks.__aexit__(kind, error, trace)

    @property
    def is_idle(self) -> bool:
        """Whether no task is left."""
        return not self._scopes

    def start(self, work: Callable[[], Awaitable[None]]) -> Cancellable:
        """Run `work`. An unexpected exception is reported as `internal_error` and ends only this work."""
        scope = anyio.CancelScope(shield=True)
        if self._is_over:
            scope.cancel()
        self._scopes.add(scope)
        self._tasks.start_soon(self._run, scope, work)
        return scope

    async def wait_until_idle(self) -> None:
        """Return when no task is left. Tasks that are started meanwhile are waited for as well."""
        while self._scopes:
            await self._one_ended.wait()

    def cancel_all(self) -> None:
        """Stop every task at its next wait, also tasks that are started later."""
        self._is_over = True
        for scope in self._scopes:
            scope.cancel()

    async def _run(self, scope: anyio.CancelScope, work: Callable[[], Awaitable[None]]) -> None:
        try:
            with scope:
                await work()
        except Exception:  # noqa: BLE001 - the boundary: one session's defect must not end every other session
            self._report(Diagnostic(level="error", event=Event.INTERNAL_ERROR, code=Code.INTERNAL_ERROR.value))
        finally:
            self._scopes.discard(scope)
            self._one_ended.set()
            self._one_ended = anyio.Event()
