"""The questions before a session's creation are asked in one request, and the one without an answer is still named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest

from pi_session_mcp.config.model import ExecutionProfile
from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.host.client import HostFailed
from pi_session_mcp.host.protocol import Check, Checked, CheckResult
from pi_session_mcp.host.selection import CHECKS
from pi_session_mcp.sessions.hosted.hosted_session import HostedSession
from pi_session_mcp.sessions.hosted.steps import check
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

STEP_S = Deadlines().check_step_s
PROFILE = ExecutionProfile.model_validate(
    {"default": True, "permission_profile": "read-only", "provider": "p", "model": "m", "thinking_level": "off"}
)
NAMES = [step.step for step in CHECKS]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """asyncio on a loop that jumps to the next timer when nothing else is left to do."""
    return "asyncio", {"loop_factory": VirtualTimeLoop}


class Host:
    """Says yes to the first `passes` questions, each after `pause_s`; then comes `end`."""

    def __init__(self, passes: int, end: Callable[[], bool] | None, pause_s: float = 0.0) -> None:
        self.asked: list[Check] = []
        self._passes = passes
        self._end = end
        self._pause_s = pause_s

    def place(self, sink: HostedSession) -> int:
        self._sink = sink
        return 1

    async def request(self, request: Check, _result: type[CheckResult], *, watch_after_s: float) -> CheckResult:
        self.asked.append(request)
        for step in request.steps[: self._passes]:
            await anyio.sleep(self._pause_s)
            self._sink.host_event(Checked(event="checked", session=1, step=step))
        if self._end is None:
            await anyio.sleep_forever()
        assert self._end is not None
        return CheckResult(found=self._end())


async def asked(host: Host) -> None:
    session = HostedSession(cast("Any", SimpleNamespace(client=host)), cast("Any", None), Deadlines(), own_host=False)
    await check(session, PROFILE, Deadlines())


def fails() -> bool:
    raise HostFailed("failed")


async def test_all_are_asked_in_one_request_and_in_their_order() -> None:
    host = Host(len(CHECKS), lambda: True)

    await asked(host)

    assert [(request.steps, request.selection) for request in host.asked] == [(NAMES, PROFILE.selection)]


@pytest.mark.parametrize("passes", range(len(CHECKS)))
@pytest.mark.parametrize("end", [None, fails, lambda: False, lambda: True])
async def test_the_first_question_that_is_not_answered_with_yes_is_named(
    passes: int, end: Callable[[], bool] | None
) -> None:
    with pytest.raises(Refusal) as refused:
        await asked(Host(passes, end))

    step = CHECKS[passes]
    says_no = end is not None and end is not fails and not end()
    assert (refused.value.code, refused.value.stage) == (step.no if says_no else step.failed, step.stage)


async def test_each_question_has_the_whole_bound_and_no_more() -> None:
    began = anyio.current_time()

    await asked(Host(len(CHECKS), lambda: True, pause_s=STEP_S - 0.001))
    assert anyio.current_time() - began > 4 * STEP_S
    with pytest.raises(Refusal) as refused:
        await asked(Host(len(CHECKS), lambda: True, pause_s=STEP_S + 0.001))

    assert (refused.value.code, refused.value.stage) == (Code.PI_SESSION_CREATION_FAILED, Stage.PROVIDER)
