"""From what Pi has said to what is wrong with its files and with the profiles. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.facts import AgentStore, Greeted, PiSeen, Unasked, Unseen
from pi_session_mcp.doctor.made import Check, fine, found, up_to
from pi_session_mcp.doctor.words import Id, Note, Remedy
from pi_session_mcp.errors import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.doctor.facts import NoAgentDirectory, ProfileSeen
    from pi_session_mcp.host.protocol import PiFault

_FAULTS: Final = {
    "unreadable": Remedy.PI_FILE_READABLE,
    "not_json": Remedy.PI_FILE_JSON,
    "refused": Remedy.PI_FILE_ENTRIES,
}
_STORES: Final = {
    AgentStore.NOT_WRITABLE: (Id.PI_AGENT_DIRECTORY_NOT_WRITABLE, Remedy.WRITABLE_AGENT_DIRECTORY),
    AgentStore.LOCKED: (Id.PI_LOCK_PRESENT, Remedy.REMOVE_LOCK),
}
_LINE: Final = (
    Id.PROFILE_PROVIDER_UNKNOWN,
    Id.PROFILE_MODEL_UNKNOWN,
    Id.PROFILE_AUTHENTICATION_MISSING,
    Id.PROFILE_AUTHENTICATION_UNAVAILABLE,
    Id.PROFILE_MODEL_UNAVAILABLE,
    Id.PROFILE_THINKING_LEVEL_UNAVAILABLE,
)
_CODES: Final[dict[str, tuple[Id, Remedy]]] = {
    Code.UNKNOWN_PROVIDER: (Id.PROFILE_PROVIDER_UNKNOWN, Remedy.PROFILE_PROVIDER),
    Code.UNKNOWN_MODEL: (Id.PROFILE_MODEL_UNKNOWN, Remedy.PROFILE_MODEL),
    Code.LOCAL_AUTHENTICATION_MISSING: (Id.PROFILE_AUTHENTICATION_MISSING, Remedy.LOG_IN),
    Code.LOCAL_AUTHENTICATION_UNAVAILABLE: (Id.PROFILE_AUTHENTICATION_UNAVAILABLE, Remedy.LOG_IN_AGAIN),
    Code.MODEL_UNAVAILABLE: (Id.PROFILE_MODEL_UNAVAILABLE, Remedy.AVAILABLE_MODEL),
    Code.THINKING_LEVEL_UNAVAILABLE: (Id.PROFILE_THINKING_LEVEL_UNAVAILABLE, Remedy.THINKING_LEVEL),
}
_NOTES: Final = {Unasked.COMMAND: Note.KEY_COMMAND, Unasked.RENEWAL: Note.RENEWAL}


def pi(seen: PiSeen | NoAgentDirectory | Unseen | None) -> Iterator[Check]:
    """Every check that follows from what Pi said, or from why it could not be asked."""
    match seen:
        case None:
            return
        case Unseen():
            yield found(Id.PI_CONFIGURATION_INVALID, Remedy.UNCHECKED)
        case PiSeen():
            yield from _host(seen.greeted)
            yield from _files(seen.files)
            yield fine(Id.PROXY_INVALID) if seen.proxies else found(Id.PROXY_INVALID, Remedy.PROXY)
            if seen.files == () and seen.proxies and seen.greeted is not Greeted.NOT:
                yield from (check for profile in seen.profiles for check in _profile(profile))
        case _:
            yield found(Id.PI_CONFIGURATION_INVALID, Remedy.AGENT_DIRECTORY)


def store(seen: AgentStore | Unseen | None) -> Iterator[Check]:
    """Whether Pi could lock its files, which it does to read them."""
    ids = (Id.PI_AGENT_DIRECTORY_NOT_WRITABLE, Id.PI_LOCK_PRESENT)
    match seen:
        case None:
            return
        case Unseen():
            yield found(ids[0], Remedy.UNCHECKED)
        case _:
            what, remedy = _STORES.get(seen, (None, Remedy.UNCHECKED))
            yield from up_to(ids, what, remedy)


def _host(greeted: Greeted) -> Iterator[Check]:
    what = Id.PI_RUNTIME_BROKEN
    yield found(what, Remedy.RUNTIME_AGAIN) if greeted is Greeted.NOT else fine(what)


def _files(faults: tuple[PiFault, ...] | Unseen) -> Iterator[Check]:
    what = Id.PI_CONFIGURATION_INVALID
    match faults:
        case Unseen():
            return
        case ():
            yield fine(what)
        case _:
            for fault in faults:
                yield found(what, _FAULTS[fault.value.partition("_")[2]], fault.file)


def _profile(profile: ProfileSeen) -> Iterator[Check]:
    """The line up to what a start would be refused for; what nobody could tell is left out, and a note says why."""
    if not profile.answered:
        yield fine(_LINE[0], profile.alias, Note.NO_TIME)
        return
    if profile.refused is not None and profile.may_be_extended:
        yield from _before(profile)
        return
    what, remedy = None, Remedy.UNCHECKED
    if profile.refused is not None:
        what, remedy = _CODES.get(profile.refused, (_LINE[0], Remedy.UNCHECKED))
    unasked = profile.unasked
    if unasked is None:
        yield from up_to(_LINE, what, remedy, profile.alias)
        return
    told = tuple(one for one in _LINE if one is not Id.PROFILE_AUTHENTICATION_UNAVAILABLE)
    for check in up_to(told, what, remedy, profile.alias):
        yield check.noted(_NOTES[unasked]) if check.id is Id.PROFILE_AUTHENTICATION_MISSING else check


def _before(profile: ProfileSeen) -> Iterator[Check]:
    """What is fine whatever an extension brings; the last one says why there is no more."""
    what = _CODES[profile.refused][0] if profile.refused in _CODES else _LINE[0]
    known = _LINE[: _LINE.index(what)] or _LINE[:1]
    yield from (fine(one, profile.alias) for one in known[:-1])
    yield fine(known[-1], profile.alias, Note.EXTENSION)
