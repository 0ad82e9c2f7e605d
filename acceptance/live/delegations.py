"""What the clients' models delegate: scripts and what has to come of them, fixed before a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from acceptance.live import place
from acceptance.live.talk import Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from acceptance.live.talk import Script

_LONG_MS: Final = 50_000
Seen = dict[str, Any]
"""What a script has kept of the results, by names of its own."""
DONE: Final = "It is done."


@dataclass(frozen=True, slots=True)
class Delegation:
    """One task for one client: its prompt, its model's script, its verdicts, and how many tools are called."""

    name: str
    prompt: str
    script: Callable[[Seen], Script]
    verdicts: Callable[[Seen], Iterable[tuple[str, bool]]]
    calls: int
    fixed: bool = False
    """Whether the one change of the files has been made when it is over."""


def _start(workspace: str, profile: str) -> Use:
    return Use("pi_session_start", {"workspace": workspace, "executionProfile": profile})


def _prompt(session: str, text: str, wait_ms: int = _LONG_MS) -> Use:
    return Use("pi_session_prompt", {"sessionId": session, "prompt": text, "waitMs": wait_ms})


def _turn(session: str, turn: str, wait_ms: int = 0) -> Use:
    return Use("pi_turn_get", {"sessionId": session, "turnId": turn, "waitMs": wait_ms})


def _of(tool: str, session: str) -> Use:
    return Use(tool, {"sessionId": session})


def _said(turn: Mapping[str, Any], *texts: str) -> bool:
    return turn["state"] == "completed" and all(text in turn["assistantText"] for text in texts)


def _empty(seen: Seen) -> tuple[str, bool]:
    return "session_list_empty", seen["sessions"] == []


def _four(seen: Seen) -> Script:
    (seen["capabilities"],) = yield [Use("pi_capabilities_get")]
    (started,) = yield [_start("alpha", "reader")]
    session = started["session"]["id"]
    (prompted,) = yield [_prompt(session, place.LOOK)]
    seen["turn"] = prompted["turn"]
    (closed,) = yield [_of("pi_session_close", session)]
    seen["closed"] = closed["session"]
    return DONE


def _judge_four(seen: Seen) -> Iterable[tuple[str, bool]]:
    capabilities = seen["capabilities"]
    aliases = [each["alias"] for key in ("workspaces", "executionProfiles") for each in capabilities[key]]
    yield "discovered", aliases == ["alpha", "beta", "coder", "reader"]
    yield "answered", _said(seen["turn"], place.ASIDE, place.CODE_WORDS["alpha"])
    yield "closed", seen["closed"]["state"] == "closed"


def _analysis(seen: Seen) -> Script:
    yield [Use("pi_capabilities_get")]
    (started,) = yield [_start("alpha", "reader")]
    session = started["session"]["id"]
    (first,) = yield [_prompt(session, place.LOOK)]
    (second,) = yield [_prompt(session, place.FOLLOW_UP, 0)]
    (again,) = yield [_turn(session, first["turn"]["turnId"])]
    (answer,) = yield [_turn(session, second["turn"]["turnId"], _LONG_MS)]
    (trespass,) = yield [_prompt(session, place.TRESPASS)]
    yield [_of("pi_session_close", session)]
    (listed,) = yield [Use("pi_session_list")]
    seen |= {"first": first["turn"], "again": again["turn"], "second": answer["turn"]}
    seen |= {"trespass": trespass["turn"], "sessions": listed["sessions"]}
    return DONE


def _judge_analysis(seen: Seen) -> Iterable[tuple[str, bool]]:
    yield "first_answered", _said(seen["first"], place.ASIDE, place.CODE_WORDS["alpha"])
    yield "first_turn_unchanged", seen["again"] == seen["first"]
    yield "follow_up_remembers", _said(seen["second"], place.RECALLED)
    yield "trespass_answered", _said(seen["trespass"], place.REFUSED)
    yield _empty(seen)


def _coding(seen: Seen) -> Script:
    (started,) = yield [_start("alpha", "coder")]
    session = started["session"]["id"]
    (prompted,) = yield [_prompt(session, place.FIX)]
    yield [_of("pi_session_close", session)]
    (listed,) = yield [Use("pi_session_list")]
    seen |= {"turn": prompted["turn"], "sessions": listed["sessions"]}
    return DONE


def _judge_coding(seen: Seen) -> Iterable[tuple[str, bool]]:
    yield "answered", _said(seen["turn"], place.FIXED)
    yield _empty(seen)


def _abort(seen: Seen) -> Script:
    (started,) = yield [_start("alpha", "reader")]
    session = started["session"]["id"]
    (prompted,) = yield [_prompt(session, place.PONDER, 0)]
    (aborted,) = yield [_of("pi_session_abort", session)]
    (ended,) = yield [_turn(session, prompted["turn"]["turnId"], _LONG_MS)]
    yield [_of("pi_session_close", session)]
    (fresh,) = yield [_start("alpha", "reader")]
    other = fresh["session"]["id"]
    (answer,) = yield [_prompt(other, place.LOOK)]
    yield [_of("pi_session_close", other)]
    (listed,) = yield [Use("pi_session_list")]
    seen |= {"began": prompted["turn"], "aborted": aborted["session"], "ended": ended["turn"]}
    seen |= {"fresh": session != other, "answer": answer["turn"], "sessions": listed["sessions"]}
    return DONE


def _judge_abort(seen: Seen) -> Iterable[tuple[str, bool]]:
    yield "ran", seen["began"]["state"] == "running"
    yield "session_idle", seen["aborted"]["state"] == "idle"
    yield "turn_aborted", seen["ended"]["state"] == "aborted"
    yield "fresh_session", seen["fresh"]
    yield "fresh_session_answers", _said(seen["answer"], place.CODE_WORDS["alpha"])
    yield _empty(seen)


def _two(seen: Seen) -> Script:
    names = list(place.CODE_WORDS)
    started = yield [_start(name, "reader") for name in names]
    sessions = [each["session"]["id"] for each in started]
    (opened,) = yield [Use("pi_session_list")]
    prompted = yield [_prompt(session, place.LOOK) for session in sessions]
    yield [_of("pi_session_close", session) for session in sessions]
    (listed,) = yield [Use("pi_session_list")]
    seen |= {"open": {each["id"] for each in opened["sessions"]} == set(sessions), "different": len(set(sessions)) == 2}
    seen |= {
        "turns": dict(zip(names, (each["turn"] for each in prompted), strict=True)),
        "sessions": listed["sessions"],
    }
    return DONE


def _judge_two(seen: Seen) -> Iterable[tuple[str, bool]]:
    yield "both_open", seen["open"] and seen["different"]
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        turn = seen["turns"][name]
        mixed = place.CODE_WORDS[other] in turn.get("assistantText", "")
        yield f"{name}_answered", _said(turn, place.CODE_WORDS[name]) and not mixed
    yield _empty(seen)


def _longer(seen: Seen) -> Script:
    (started,) = yield [_start("alpha", "reader")]
    session = started["session"]["id"]
    (prompted,) = yield [_prompt(session, place.COUNT, 500)]
    (read,) = yield [_turn(session, prompted["turn"]["turnId"], _LONG_MS)]
    yield [_of("pi_session_close", session)]
    (listed,) = yield [Use("pi_session_list")]
    seen |= {"began": prompted["turn"], "ended": read["turn"], "sessions": listed["sessions"]}
    return DONE


def _judge_longer(seen: Seen) -> Iterable[tuple[str, bool]]:
    yield "still_running_after_wait", seen["began"]["state"] == "running"
    yield "same_turn", seen["began"]["turnId"] == seen["ended"]["turnId"]
    yield "answered", _said(seen["ended"], place.COUNTED)
    yield _empty(seen)


def ask_unapproved(told: list[bool]) -> Script:
    """Discovery, a start and a prompt, whatever comes of them; keeps whether each was done."""
    (capabilities,) = yield [Use("pi_capabilities_get")]
    (started,) = yield [_start("alpha", "reader")]
    session = started.get("session", {}).get("id", "00000000-0000-4000-8000-000000000000")
    (prompted,) = yield [_prompt(session, place.LOOK)]
    told += [result.get("ok") is True for result in (capabilities, started, prompted)]
    return DONE


def leave_running(has_begun: Callable[[], bool]) -> Script:
    """A turn that never ends, and a client that is done once Pi's model has been asked: `has_begun` waits for that."""
    (started,) = yield [_start("alpha", "reader")]
    yield [_prompt(started["session"]["id"], place.PONDER, 0)]
    return DONE if has_begun() else "It has not begun."


def wait_for_ever() -> Script:
    """A turn that never ends, and a client that waits for it until somebody ends the client."""
    (started,) = yield [_start("alpha", "reader")]
    session = started["session"]["id"]
    (prompted,) = yield [_prompt(session, place.PONDER, 0)]
    while True:
        yield [_turn(session, prompted["turn"]["turnId"], _LONG_MS)]


DELEGATIONS: Final = (
    Delegation("four_calls", "Have the code word found.", _four, _judge_four, 4),
    Delegation("analysis", "Have the workspace looked at, and ask again.", _analysis, _judge_analysis, 9),
    Delegation("abort", "Have something begun, stop it, and begin anew.", _abort, _judge_abort, 9),
    Delegation("two_sessions", "Have both workspaces looked at, at once.", _two, _judge_two, 8),
    Delegation("longer_than_wait", "Have somebody count slowly.", _longer, _judge_longer, 5),
    Delegation("coding", "Have the typo fixed.", _coding, _judge_coding, 4, fixed=True),
)
"""In this order. The one that changes a file comes last."""
