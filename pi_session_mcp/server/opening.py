"""The first part of `serve`: a plain loop that lets the front answer until something needs the MCP SDK, and meanwhile.

Standard library only. It ends when the SDK is there, or when there is nothing to wait for.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pi_session_mcp.server import frames

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.server.descriptors import Inlet, Outlet
    from pi_session_mcp.server.front import Front
    from pi_session_mcp.server.lifecycle import Stop
    from pi_session_mcp.server.stderr import TransportErrors

_HEAD_START_S: Final = 0.05
"""The judgement begins after the tools were listed, or after this: it would take the processor from the answers."""
_SWITCH_S: Final = 0.0005
"""While loading, the interpreter changes threads this often, so that an answer does not wait its usual 5 ms."""
_MAX_WAITING_BYTES: Final = 2 * frames.MAX_LINE_BYTES
_MAX_PENDING_BYTES: Final = 1024 * 1024

_Judged = TypeVar("_Judged")
_Loaded = TypeVar("_Loaded")


class Loading(Generic[_Judged, _Loaded]):
    """Two steps, each in a thread: `judge` finds whether the server may run at all, `load` makes all the rest of that.

    Each begins once, and calls `wake` when it is done. `failure` is whatever was raised.
    """

    def __init__(self, judge: Callable[[], _Judged], load: Callable[[_Judged], _Loaded]) -> None:
        self.judging = self.judged = False
        self.loaded: _Loaded | None = None
        self.failure: BaseException | None = None
        self._judge = judge
        self._load = load
        self._loading = False

    def judge(self, wake: Callable[[], object]) -> None:
        """Begin the first step, unless it has begun."""
        if not self.judging:
            self.judging = True
            self._begin(self._run_judge, wake)

    def load(self, wake: Callable[[], object]) -> None:
        """Begin the second step, unless it has begun or the first is not done."""
        if self.judged and not self._loading:
            self._loading = True
            self._begin(self._run_load, wake)

    def _begin(self, step: Callable[[], None], wake: Callable[[], object]) -> None:
        threading.Thread(target=self._run, args=(step, wake), name="loading", daemon=True).start()

    def _run(self, step: Callable[[], None], wake: Callable[[], object]) -> None:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        try:
            step()
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which decides
            self.failure = error
        finally:
            sys.setswitchinterval(usual)
            wake()

    def _run_judge(self) -> None:
        self._judgement = self._judge()
        self.judged = True

    def _run_load(self) -> None:
        self.loaded = self._load(self._judgement)


class Opening:
    """What has been read and not been handed on. Messages that have to wait are put into `waiting`."""

    def __init__(
        self,
        inlet: Inlet,
        outlet: Outlet,
        splitter: frames.LineSplitter,
        front: Front,
        complain: TransportErrors,
        waiting: list[frames.Line],
    ) -> None:
        self._waiting = waiting
        self._inlet = inlet
        self._outlet = outlet
        self._splitter = splitter
        self._front = front
        self._complain = complain
        self._waiting_bytes = 0
        self._awake, self._alarm = os.pipe()

    def attend(self, loading: Loading[Any, Any], stop: Stop) -> None:
        """Answer until everything is loaded, the end was requested, or nobody is there any more.

        A client that asks for nothing but what the front can say does not pay for the rest.
        """
        stop.on_request(self._wake)
        begun = monotonic()
        while stop.status is None and not self._is_over(loading):
            head_start_s = max(0.0, begun + _HEAD_START_S - monotonic())
            if not head_start_s or self._front.tools_listed or self._waiting or self._inlet.ended:
                loading.judge(self._wake)
            if self._waiting:
                loading.load(self._wake)
            self._once(None if loading.judging else head_start_s)

    def _is_over(self, loading: Loading[Any, Any]) -> bool:
        if loading.loaded is not None or loading.failure is not None or self._outlet.broken:
            return True
        return self._inlet.ended and not self._waiting and loading.judged

    def _once(self, timeout_s: float | None) -> None:
        poller = select.poll()
        poller.register(self._awake, select.POLLIN)
        if self._may_read():
            assert self._inlet.fd is not None
            poller.register(self._inlet.fd, select.POLLIN)
        if self._outlet.pending:
            assert self._outlet.fd is not None
            poller.register(self._outlet.fd, select.POLLOUT)
        for fd, _ in poller.poll(None if timeout_s is None else timeout_s * 1000):
            if fd == self._awake:
                os.read(self._awake, 64)
            elif fd == self._inlet.fd:
                self._read()
            else:
                self._outlet.pump()

    def _may_read(self) -> bool:
        full = self._waiting_bytes >= _MAX_WAITING_BYTES or self._outlet.pending >= _MAX_PENDING_BYTES
        return not self._inlet.ended and not full

    def _read(self) -> None:
        for line in self._splitter.feed(self._inlet.read()):
            self._take(line)
        if self._inlet.ended:
            for line in self._splitter.end():
                self._take(line)

    def _take(self, line: frames.Line) -> None:
        if self._waiting:
            self._keep(line)
            return
        message = frames.read(line)
        if isinstance(message, frames.Refused):
            self._outlet.put(message.answer())
            self._complain(message.reason)
        elif not isinstance(message, frames.Reply):
            given = self._front.deal_with(message)
            if given is None:
                self._keep(line)
            elif given.answer is not None:
                self._outlet.put(frames.encode(given.answer))

    def _keep(self, line: frames.Line) -> None:
        self._waiting.append(line)
        self._waiting_bytes += len(line) if isinstance(line, bytes) else 0

    def _wake(self) -> None:
        os.write(self._alarm, b"\0")
