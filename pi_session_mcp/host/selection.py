"""The questions to a host before a session is made, and what each answer means to a start and to the doctor. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pi_session_mcp.errors import Code, Stage
from pi_session_mcp.host.protocol import PROTOCOL_VERSION, CheckName
from pi_session_mcp.runtime import versions

if TYPE_CHECKING:
    from pi_session_mcp.host.protocol import HelloResult


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One question: its name for the host, the code if the answer is no, and the code if there is no answer in time."""

    step: CheckName
    stage: Stage
    no: Code
    failed: Code

    def refusal(self, *, found: bool | None) -> Code | None:
        """With which code this answer refuses a session, if it does. `None` stands for a failure to answer."""
        if found is None:
            return self.failed
        return None if found else self.no


CHECKS: Final = (
    CheckStep("provider", Stage.PROVIDER, Code.UNKNOWN_PROVIDER, Code.PI_SESSION_CREATION_FAILED),
    CheckStep("model", Stage.MODEL, Code.UNKNOWN_MODEL, Code.PI_SESSION_CREATION_FAILED),
    CheckStep("check_auth", Stage.CHECK_AUTH, Code.LOCAL_AUTHENTICATION_MISSING, Code.LOCAL_AUTHENTICATION_UNAVAILABLE),
    CheckStep("get_auth", Stage.GET_AUTH, Code.LOCAL_AUTHENTICATION_UNAVAILABLE, Code.LOCAL_AUTHENTICATION_UNAVAILABLE),
    CheckStep("availability", Stage.AVAILABILITY, Code.MODEL_UNAVAILABLE, Code.PI_SESSION_CREATION_FAILED),
)
"""In the order in which they are asked."""


def level_refusal(configured: str, created: str) -> Code | None:
    """With which code a session is refused that has another thinking level than the configured one."""
    return None if created == configured else Code.THINKING_LEVEL_UNAVAILABLE


def acceptable(hello: HelloResult) -> bool:
    """Whether a greeting names versions that we have tested and every export that we use."""
    return (
        hello.protocol == PROTOCOL_VERSION
        and versions.node_is_supported(hello.node)
        and versions.sdk_is_tested(hello.sdk)
        and not hello.missing
    )
