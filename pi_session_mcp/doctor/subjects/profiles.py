"""What the execution profiles select of Pi: provider, model, login and thinking level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pi_session_mcp.doctor.subject import OK, PROFILE, UNCHECKED, Check, Row, Subject, error, fine, up_to
from pi_session_mcp.errors import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_session_mcp.doctor.installation import Installation
    from pi_session_mcp.doctor.pi_answer import Profile

PROFILE_PROVIDER_UNKNOWN: Final = error(
    "profile_provider_unknown",
    PROFILE,
    "provider known",
    "unknown provider",
    "Pi knows no provider of the profile's name.",
    "Correct the profile's provider in the configuration, or define it in models.json in Pi's agent directory; "
    "`pi --list-models` lists what Pi knows.",
)
PROFILE_MODEL_UNKNOWN: Final = error(
    "profile_model_unknown",
    PROFILE,
    "model known",
    "unknown model",
    "The profile's provider has no model of that name in Pi's catalogue or in `models.json`.",
    "Correct the profile's model in the configuration, or define it in models.json in Pi's agent directory; "
    "`pi --list-models` lists what Pi knows.",
)
PROFILE_AUTHENTICATION_MISSING: Final = error(
    "profile_authentication_missing",
    PROFILE,
    "login or key there",
    "no login and no key",
    "Pi has no credential for the profile's provider.",
    "Start `pi` (npm package @earendil-works/pi-coding-agent) and log in to the profile's provider with /login, or "
    "give it an API key in auth.json or by its environment variable, which the client has to pass on.",
)
PROFILE_AUTHENTICATION_UNAVAILABLE: Final = error(
    "profile_authentication_unavailable",
    PROFILE,
    "login or key usable",
    "login or key cannot be used",
    "There is a credential for the profile's provider, and Pi cannot use it: a variable that it names is not set, "
    "or a stored login is damaged. Only a prompt can tell whether the provider accepts it.",
    "Correct the key of the profile's provider: set the variable that it names, or start `pi` and log in again "
    "with /login.",
)
PROFILE_MODEL_UNAVAILABLE: Final = error(
    "profile_model_unavailable",
    PROFILE,
    "model available",
    "model not available to this login",
    "The provider has the model, but not for this login.",
    "Name a model that your login to the provider may use; `pi --list-models` lists them.",
)
PROFILE_THINKING_LEVEL_UNAVAILABLE: Final = error(
    "profile_thinking_level_unavailable",
    PROFILE,
    "thinking level available",
    "thinking level not available",
    "The model has no such thinking level, and Pi would silently take another one.",
    "Set the profile's thinkingLevel to one that the model has; a model without thinking has off.",
)
_CODES: Final[dict[str | None, Row]] = {
    Code.UNKNOWN_PROVIDER: PROFILE_PROVIDER_UNKNOWN,
    Code.UNKNOWN_MODEL: PROFILE_MODEL_UNKNOWN,
    Code.LOCAL_AUTHENTICATION_MISSING: PROFILE_AUTHENTICATION_MISSING,
    Code.LOCAL_AUTHENTICATION_UNAVAILABLE: PROFILE_AUTHENTICATION_UNAVAILABLE,
    Code.MODEL_UNAVAILABLE: PROFILE_MODEL_UNAVAILABLE,
    Code.THINKING_LEVEL_UNAVAILABLE: PROFILE_THINKING_LEVEL_UNAVAILABLE,
}
"""The code with which a start is refused, and the row that says so."""
ROWS: Final = tuple(_CODES.values())
NOTES: Final = {
    "command": "Whether the key works was not checked: a command would have to print it, and the doctor runs none.",
    "renewal": "Whether the login works was not checked: it has to be renewed, and the doctor connects to nothing.",
    "extension": "The rest was not checked: an extension may bring it, and the doctor runs none.",
    "no_time": "Nothing was checked: Pi did not answer in time.",
}
"""What the doctor could not check by looking. The keys of the first two are what Pi says."""


def _look(here: Installation) -> tuple[Profile, ...] | None:
    """Nothing when another fault would refuse every start."""
    return here.answer.profiles if here.answer and here.answer.can_start else None


def _verdict(profiles: tuple[Profile, ...]) -> Iterator[Check]:
    for profile in profiles:
        if not profile.answered:
            yield fine(ROWS[0], profile.alias, NOTES["no_time"])
        elif profile.refused is not None and profile.may_be_extended:
            yield from _before(profile)
        else:
            yield from _line(profile)


def _line(profile: Profile) -> Iterator[Check]:
    """The rows up to what a start would be refused for. What could not be told is left out, and a note says why."""
    status = _row(profile).id if profile.refused else OK
    remedy = None if profile.refused in _CODES else UNCHECKED
    if profile.unasked is None:
        yield from up_to(ROWS, status, remedy, profile.alias)
        return
    told = tuple(row for row in ROWS if row is not PROFILE_AUTHENTICATION_UNAVAILABLE)
    for check in up_to(told, status, remedy, profile.alias):
        noted = check.row is PROFILE_AUTHENTICATION_MISSING
        yield replace(check, note=NOTES[profile.unasked]) if noted else check


def _before(profile: Profile) -> Iterator[Check]:
    """What is fine whatever an extension brings. The note of the last check says why there are no more."""
    known = ROWS[: ROWS.index(_row(profile))] or ROWS[:1]
    yield from (fine(row, profile.alias) for row in known[:-1])
    yield fine(known[-1], profile.alias, NOTES["extension"])


def _row(profile: Profile) -> Row:
    return _CODES.get(profile.refused, ROWS[0])


SUBJECT: Final = Subject(ROWS, _look, _verdict)
