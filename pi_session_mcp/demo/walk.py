"""The steps that the demonstration takes through one connection: a read-only session, then a coding session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.demo import world as script
from pi_session_mcp.demo.calls import Tools, completed
from pi_session_mcp.demo.model import tool_results
from pi_session_mcp.demo.steps import Seen, require
from pi_session_mcp.demo.world import difference

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.client import Client

    from pi_session_mcp.demo.steps import Steps
    from pi_session_mcp.demo.world import DemoWorld

    Act = Callable[[], Awaitable[Seen]]

TOOLS: Final = frozenset(
    {
        "pi_capabilities_get",
        "pi_session_start",
        "pi_session_list",
        "pi_session_get",
        "pi_session_prompt",
        "pi_turn_get",
        "pi_session_abort",
        "pi_session_close",
    }
)


class Walk:
    """The steps in their order, and what earlier steps found out for later ones."""

    def __init__(self, client: Client, world: DemoWorld) -> None:
        self._client = client
        self._tools = Tools(client)
        self._world = world
        self._reader = ""
        self._coder = ""

    async def take(self, steps: Steps) -> bool:
        """Take the steps until one is not seen, and return whether all were seen."""
        path: tuple[tuple[str, Act], ...] = (
            ("The eight tools are listed", self._list_tools),
            ("Capabilities name what may be used", self._ask_capabilities),
            ("A read-only session starts", self._start_reader),
            ("The model lists and reads files", self._look_around),
            ("A follow-up keeps the context", self._follow_up),
            ("What read-only forbids is refused", self._trespass),
            ("A coding session starts", self._start_coder),
            ("A coding turn changes one file", self._fix),
            ("A running turn is aborted", self._abort),
            ("Both sessions close", self._close),
        )
        for name, act in path:
            if not await steps.take(name, act):
                return False
        return True

    async def _list_tools(self) -> Seen:
        listed = [tool.name for tool in (await self._client.list_tools()).tools]
        require(sorted(listed) == sorted(TOOLS), "The list is not that of the eight tools.")
        return Seen(tuple(listed))

    async def _ask_capabilities(self) -> Seen:
        workspaces, profiles = await self._tools.capabilities()
        configured = (script.WORKSPACE,), (script.CODER, script.READER)
        require((workspaces, profiles) == configured, "The aliases are not those of the configuration.")
        return Seen.lines(f"workspace: {', '.join(workspaces)}", f"profiles: {', '.join(profiles)}")

    async def _start_reader(self) -> Seen:
        self._reader = await self._tools.start(script.WORKSPACE, script.READER)
        return await self._describe(self._reader, "read-only")

    async def _start_coder(self) -> Seen:
        self._coder = await self._tools.start(script.WORKSPACE, script.CODER)
        return await self._describe(self._coder, "coding")

    async def _describe(self, session: str, permissions: str) -> Seen:
        view = await self._tools.session(session)
        state = (view["state"], view["profile"])
        require(state == ("idle", permissions), f"The session is not an idle {permissions} one.")
        return Seen.lines(f"{permissions}, {view['provider']}/{view['model']}")

    async def _look_around(self) -> Seen:
        answer = completed(await self._tools.prompt(self._reader, script.LOOK))
        expected = (script.CODE, script.NOTES, self._world.code_word)
        require(all(part in answer for part in expected), "The answer lacks what stands in the workspace.")
        return Seen.lines(f"> {script.LOOK}", answer)

    async def _follow_up(self) -> Seen:
        answer = completed(await self._tools.prompt(self._reader, script.FOLLOW_UP))
        shown = str(self._world.model.requests[-1]["messages"])
        remembered = script.LOOK in answer and self._world.code_word in shown
        require(remembered, "The model was not shown the first turn again.")
        return Seen.lines(f"> {script.FOLLOW_UP}", answer)

    async def _trespass(self) -> Seen:
        before = self._world.files()
        completed(await self._tools.prompt(self._reader, script.TRESPASS))
        results = tool_results(self._world.model.requests[-1])
        require(len(results) == len(script.FORBIDDEN), "The model was not answered to every call.")
        require(self._world.secret not in str(results), "The read-only session read outside its workspace.")
        require(self._world.files() == before, "The read-only session changed the workspace.")
        return Seen(tuple(f"{name}: refused" for name, _ in script.FORBIDDEN))

    async def _fix(self) -> Seen:
        before = self._world.files()
        completed(await self._tools.prompt(self._coder, script.FIX))
        after = self._world.files()
        changed = [name for name in {*before, *after} if before.get(name) != after.get(name)]
        require(changed == [script.CODE], f"{len(changed)} files changed instead of one.")
        return Seen((f"> {script.FIX}", *difference(before, after)))

    async def _abort(self) -> Seen:
        model = self._world.model
        asked = len(model.requests)
        turn = await self._tools.prompt(self._coder, script.PONDER, wait_ms=0)
        await _until(lambda: model.wait_until_requested(asked + 1, DEADLINES.demo_glance_s))
        state = await self._tools.abort(self._coder)
        ended = await self._tools.turn(self._coder, turn.id)
        states = (turn.state, ended.state, state)
        require(states == ("running", "aborted", "idle"), f"The turn is {ended.state}, the session {state}.")
        await _until(lambda: model.wait_until_idle(DEADLINES.demo_glance_s))
        return Seen.lines("the model's connection is closed")

    async def _close(self) -> Seen:
        sessions = (self._reader, self._coder)
        require(await self._tools.open_sessions() == {*sessions}, "The two sessions are not listed.")
        states = [await self._tools.close(session) for session in sessions]
        closed = states == ["closed", "closed"] and not await self._tools.open_sessions()
        require(closed, "A session is still open.")
        return Seen.lines("open before: 2", "open after: 0")


async def _until(seen: Callable[[], bool]) -> None:
    """Wait for something that the model's threads notice. The waits are short because a thread cannot be cancelled."""
    while not await anyio.to_thread.run_sync(seen):
        pass
