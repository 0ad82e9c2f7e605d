"""Work that outlives the caller who asked for it, owned by the registry's task group."""

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
        """Stop at the next wait. Returns at once; what has ended is not bothered."""


class Background:
    """A task group whose tasks no cancellation from outside reaches.

    A model that goes on spending must be aborted and disposed of even when the request that began it, or the whole
    server, is being cancelled. The owner bounds each task and calls `cancel_all()` when its patience ends.
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
        """Run `work`. An unexpected exception is reported as `internal_error` and ends that work alone."""
        scope = anyio.CancelScope(shield=True)
        if self._is_over:
            scope.cancel()
        self._scopes.add(scope)
        self._tasks.start_soon(self._run, scope, work)
        return scope

    async def wait_until_idle(self) -> None:
        """Return when no task is left, those that are started meanwhile included."""
        while self._scopes:
            await self._one_ended.wait()

    def cancel_all(self) -> None:
        """Tell every task to stop at its next wait, one that is started later too."""
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
