"""What one run of a server tells. Each function starts a server, returns figures by key, and leaves nothing behind."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks import tree
from benchmarks.client import Client, Failed, content_of
from benchmarks.figures import percentile
from benchmarks.world import WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.client import Launch

Values = dict[str, float]

TURN_WITHIN_MS: Final = 50_000
SESSIONS: Final = 50
_TURNS_EACH: Final = 4
_MODEL_MS: Final = 50
_IN_FLIGHT: Final = 64
_OPEN_AT_THE_END: Final = 10
_IDLE_SESSIONS: Final = 5
_BARE_WITHIN_S: Final = 30


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much one run repeats, and for how long it looks at an idle server."""

    turns: int
    reads: int
    idle_s: float


def handshake(launch: Launch) -> Values:
    """Spawn, handshake, idle, the first call of a tool, end."""
    with Client(launch) as client:
        initialized, listed = client.handshake()
        values = {
            "listed_cpu": tree.cpu_ms(client.pid),
            "initialized": ms(initialized - client.spawned_at),
            "listed": ms(listed - client.spawned_at),
        }
        client.settle()
        values["settled_cpu"] = tree.cpu_ms(client.pid)
        values |= _memory(client, "idle")
        began = time.perf_counter()
        client.call("pi_session_list")
        values["first_call"] = ms(time.perf_counter() - began)
        return values | _end(client, 0)


def first_turn(launch: Launch) -> Values:
    """A client that asks for a session and a turn as soon as it can."""
    with Client(launch) as client:
        client.handshake()
        session = start(client)
        ready = time.perf_counter()
        turn(client, session)
        done = time.perf_counter()
        client.end()
        return {"first_session": ms(ready - client.spawned_at), "first_turn_done": ms(done - client.spawned_at)}


def work(launch: Launch, amounts: Amounts) -> Values:
    """A server from its first session to its fiftieth, and what its turns cost."""
    with Client(launch) as client:
        client.handshake()
        client.settle()
        began = time.perf_counter()
        session = start(client)
        values = {"cold_start": ms(time.perf_counter() - began)}
        values |= _memory(client, "sessions_1", settled=True)
        values |= _turns(client, session, amounts.turns)
        values |= reads(client, session, amounts.reads)
        more, sessions = _fill(client, session)
        values |= more
        values["concurrent"] = ms(all_at_once(client, sessions))
        values["delegation"] = ms(_delegate(client, sessions))
        client.settle()
        values["worked_pss"] = tree.memory(client.pid).pss
        for one in sessions[_OPEN_AT_THE_END:]:
            client.call("pi_session_close", sessionId=one)
        return values | _end(client, _OPEN_AT_THE_END)


def idle(launches: Iterable[Launch], idle_s: float) -> list[Values]:
    """All servers, idle at the same time."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(launch)) for launch in launches]
        for client in clients:
            client.handshake()
            for _ in range(_IDLE_SESSIONS):
                turn(client, start(client))
        for client in clients:
            client.settle()
        before = [_activity(client) for client in clients]
        time.sleep(idle_s)
        after = [_activity(client) for client in clients]
        for client in clients:
            client.end()
        return [_idleness(one, other, idle_s) for one, other in zip(before, after, strict=True)]


def bare(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
    """The SDK without a server. Raises `Failed`."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_BARE_WITHIN_S, check=True)
    except (subprocess.SubprocessError, OSError) as error:
        raise Failed("the bare SDK failed", type(error).__name__) from error
    said = json.loads(done.stdout)
    first, *later = said["turns"]
    return {
        "SDK loaded": said["loaded"],
        "first session ready": said["ready"],
        "first turn": first,
        "later turns, p50": statistics.median(later),
    }


# --- steps -----------------------------------------------------------------------------------------------------------


def start(client: Client) -> str:
    """A new session's id."""
    return str(client.call("pi_session_start", workspace=WORKSPACE)["session"]["id"])


def turn(client: Client, session: str) -> tuple[float, str]:
    """One turn, waited for: the seconds it took, and its id."""
    took, content = client.timed_call("pi_session_prompt", sessionId=session, prompt="hello", waitMs=TURN_WITHIN_MS)
    return took, completed(content)["turnId"]


def completed(content: Mapping[str, Any]) -> dict[str, str]:
    """The turn of an answer. Raises `Failed` when it did not complete."""
    turn: dict[str, str] = content["turn"]
    if turn["state"] != "completed" or turn["assistantText"] != "done":
        raise Failed("a turn did not complete as it should", turn)
    return turn


def _turns(client: Client, session: str, amount: int) -> Values:
    first, _ = turn(client, session)
    later = [ms(turn(client, session)[0]) for _ in range(amount)]
    return {"first_turn": ms(first), "turn_p50": percentile(later, 50), "turn_p99": percentile(later, 99)}


def reads(client: Client, session: str, amount: int) -> Values:
    """Read one turn so many times: one read after the other, then many in flight."""
    _, read = turn(client, session)
    took = [client.timed_call("pi_turn_get", sessionId=session, turnId=read)[0] * 1e6 for _ in range(amount)]
    began = time.perf_counter()
    for sent in range(amount + _IN_FLIGHT):
        if sent < amount:
            client.send_call("pi_turn_get", sessionId=session, turnId=read)
        if sent >= _IN_FLIGHT:
            content_of(client.next())
    rate = amount / (time.perf_counter() - began)
    return {"get_p50": percentile(took, 50), "get_p99": percentile(took, 99), "in_flight": rate}


def _fill(client: Client, first: str) -> tuple[Values, list[str]]:
    """Start sessions until there are fifty."""
    values: Values = {}
    sessions, took = [first], []
    while len(sessions) < SESSIONS:
        began = time.perf_counter()
        sessions.append(start(client))
        took.append(ms(time.perf_counter() - began))
        if len(sessions) == 10:
            values |= _memory(client, "sessions_10")
    values |= _memory(client, "sessions_50", settled=True)
    return values | {"warm_start_p50": percentile(took, 50), "warm_start_p99": percentile(took, 99)}, sessions


def all_at_once(client: Client, sessions: Sequence[str]) -> float:
    """One turn of each session, all at the same time; seconds until the last was done."""
    began = time.perf_counter()
    for session in sessions:
        client.send_call("pi_session_prompt", sessionId=session, prompt="hello", waitMs=TURN_WITHIN_MS)
    for _ in sessions:
        answer = client.next()
        completed(content_of(answer))
    return answer.at - began


def _delegate(client: Client, sessions: Sequence[str]) -> float:
    """A few turns of each session one after the other, all sessions at the same time; seconds."""
    prompt = f"wait {_MODEL_MS}"
    began = time.perf_counter()
    asked: dict[int, tuple[str, int]] = {}

    def ask(session: str, left: int) -> None:
        call = client.send_call("pi_session_prompt", sessionId=session, prompt=prompt, waitMs=TURN_WITHIN_MS)
        asked[call] = session, left

    for session in sessions:
        ask(session, _TURNS_EACH - 1)
    while asked:
        answer = client.next()
        completed(content_of(answer))
        session, left = asked.pop(answer.id)
        if left:
            ask(session, left - 1)
    return answer.at - began


def _memory(client: Client, key: str, *, settled: bool = False) -> Values:
    if settled:
        client.settle()
    seen = tree.memory(client.pid)
    return {name: value for name, value in ((f"{key}_pss", seen.pss), (f"{key}_rss", seen.rss)) if name in _SHOWN}


_SHOWN: Final = frozenset(
    f"{key}_{kind}" for key in ("idle", "sessions_1", "sessions_50") for kind in ("pss", "rss")
) | {"sessions_10_pss"}


def _end(client: Client, sessions: int) -> Values:
    server_s, last_s, left = client.end()
    return {f"gone_{sessions}": ms(server_s), f"last_{sessions}": ms(last_s), "left": left}


def _activity(client: Client) -> tuple[int, int, float]:
    every = sum(tree.wakeups(process.pid) for process in tree.processes(client.pid))
    return tree.wakeups(client.pid), every, tree.cpu_ms(client.pid)


def _idleness(before: tuple[int, int, float], after: tuple[int, int, float], seconds: float) -> Values:
    server, every, cpu_ms = (new - old for old, new in zip(before, after, strict=True))
    return {"wakeups": server / seconds, "tree_wakeups": every / seconds, "idle_cpu": cpu_ms * 10 / seconds}


def ms(seconds: float) -> float:
    """Milliseconds."""
    return seconds * 1000
