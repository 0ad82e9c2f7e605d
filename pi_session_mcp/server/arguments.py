"""Arguments of the tools, parsed before anything happens.

The protocol checks only that `arguments` is an object. The JSON Schema in the catalog tells clients what to send, and
these models decide by the same rules. JSON knows one kind of number, so `5.0` is the integer 5, as JSON Schema has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.server.catalog import PROMPT_MAX_CHARACTERS, UUID_PATTERN, WAIT_MAX_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

PublicId = Annotated[str, Field(min_length=36, max_length=36, pattern=UUID_PATTERN)]
"""A session's or turn's id exactly as it was given out: canonical and lower case."""


def _unicode(text: str) -> str:
    """Refuse lone surrogates: pydantic lets them pass, and no process could be handed them."""
    text.encode()
    return text


Text = Annotated[str, AfterValidator(_unicode)]


def _whole(number: object) -> object:
    """The integer, for a number that is one and was written with a fraction or an exponent: some clients do."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


WaitMs = Annotated[int, BeforeValidator(_whole), Field(alias="waitMs", ge=0, le=WAIT_MAX_MS)]


class Arguments(BaseModel):
    """What all tools refuse: unknown fields, and values of another type."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class NoArguments(Arguments):
    """For `pi_capabilities_get` and `pi_session_list`."""


class StartArguments(Arguments):
    """For `pi_session_start`. Any text may be an alias here: only the configuration knows which ones there are."""

    workspace: str
    execution_profile: Annotated[str, Field(alias="executionProfile")] = ""

    @property
    def profile(self) -> str | None:
        """The alias sent, or `None` for the default profile. A `null` was refused: absent is not null."""
        return self.execution_profile if "execution_profile" in self.model_fields_set else None


class SessionArguments(Arguments):
    """For the tools that name a session."""

    session_id: Annotated[PublicId, Field(alias="sessionId")]


class PromptArguments(SessionArguments):
    """For `pi_session_prompt`. Lengths count code points."""

    prompt: Annotated[Text, Field(min_length=1, max_length=PROMPT_MAX_CHARACTERS)]
    wait_ms: WaitMs = 0


class TurnArguments(SessionArguments):
    """For `pi_turn_get`."""

    turn_id: Annotated[PublicId, Field(alias="turnId")]
    wait_ms: WaitMs = 0


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def parse(model: type[ArgumentsT], sent: Mapping[str, Any] | None) -> ArgumentsT:
    """The arguments as `model`; a call without any is a call with none.

    Raises `Refusal(INVALID_ARGUMENTS)`.
    """
    try:
        return model.model_validate(sent or {})
    except ValidationError:
        # Not chained: a validation error carries what was sent.
        raise Refusal(Code.INVALID_ARGUMENTS) from None
