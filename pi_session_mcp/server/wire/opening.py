"""The first part of `serve`: a plain loop that answers the client while what makes calls is not loaded yet.

Standard library only. Loading begins in a thread: first what decides whether the server may run, and for the first call
the rest. The loop ends when all is loaded, or when there is nothing to wait for.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.server.wire.frames import MAX_LINE_BYTES, slot
from pi_session_mcp.server.wire.protocol import Call, Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_session_mcp.server.process.descriptors import Inlet, Outlet
    from pi_session_mcp.server.process.lifecycle import Stop
    from pi_session_mcp.server.wire.frames import Line, LineSplitter
    from pi_session_mcp.server.wire.reception import Reception

_SWITCH_S: Final = 0.0005
"""How often the interpreter changes threads while it loads. With its usual 5 ms, answers would wait for that long."""
_MAX_WAITING_BYTES: Final = 2 * MAX_LINE_BYTES
_MAX_PENDING_BYTES: Final = 1024 * 1024

_Judged = TypeVar("_Judged")
_Loaded = TypeVar("_Loaded")


class Loading(Generic[_Judged, _Loaded]):
    """Two steps, each in a thread: `judge` decides whether the server may run, and `load` makes what serves the calls.

    Each step begins once and calls `wake` when it is done. `failure` is the exception that a step has raised.
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
    """Answers what can be answered at once, and keeps the calls, in `calls`, until they can be made."""

    def __init__(
        self,
        inlet: Inlet,
        outlet: Outlet,
        splitter: LineSplitter,
        reception: Reception,
        calls: list[Call],
        judgement_after_s: float = DEADLINES.judgement_after_s,
    ) -> None:
        self.calls = calls
        self._inlet = inlet
        self._outlet = outlet
        self._splitter = splitter
        self._reception = reception
        self._judgement_after_s = judgement_after_s
        self._awake, self._alarm = os.pipe()

    def attend(self, loading: Loading[Any, Any], stop: Stop) -> None:
        """Answer until everything is loaded, the end was requested, or the client has gone.

        A client that calls no tool does not pay for what makes calls.
        """
        stop.on_request(self._wake)
        begun = monotonic()
        while stop.status is None and not self._is_over(loading):
            head_start_s = max(0.0, begun + self._judgement_after_s - monotonic())
            if not head_start_s or self._reception.protocol.tools_listed or self.calls or self._inlet.ended:
                loading.judge(self._wake)
            if self.calls:
                loading.load(self._wake)
            self._once(None if loading.judging else head_start_s)

    def _is_over(self, loading: Loading[Any, Any]) -> bool:
        if loading.loaded is not None or loading.failure is not None or self._outlet.broken:
            return True
        return self._inlet.ended and not self.calls and loading.judged

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
                self._reception.send_late()

    def _may_read(self) -> bool:
        full = self._reception.in_flight.bytes >= _MAX_WAITING_BYTES or self._outlet.pending >= _MAX_PENDING_BYTES
        return not self._inlet.ended and not full

    def _read(self) -> None:
        for line in self._splitter.feed(self._inlet.read()):
            self._take(line)
        if self._inlet.ended:
            for line in self._splitter.end():
                self._take(line)

    def _take(self, line: Line) -> None:
        heard = self._reception.take(line)
        if isinstance(heard, Call):
            self.calls.append(heard)
        elif isinstance(heard, Cancelled):
            self._forget(heard)

    def _forget(self, cancelled: Cancelled) -> None:
        for call in [call for call in self.calls if slot(call.id) == cancelled.slot]:
            self.calls.remove(call)
            self._reception.in_flight.settle(call.id)

    def _wake(self) -> None:
        os.write(self._alarm, b"\0")
