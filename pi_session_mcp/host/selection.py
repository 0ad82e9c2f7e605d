"""What a host is asked about a profile's provider and model, and what each answer means. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pi_session_mcp.errors import Code, Stage


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One question before creation: its name for the host, and the code of a no, of a failure, and of a late answer."""

    step: Literal["provider", "model", "check_auth", "get_auth", "availability"]
    stage: Stage
    no: Code
    failed: Code


CHECKS: Final = (
    CheckStep("provider", Stage.PROVIDER, Code.UNKNOWN_PROVIDER, Code.PI_SESSION_CREATION_FAILED),
    CheckStep("model", Stage.MODEL, Code.UNKNOWN_MODEL, Code.PI_SESSION_CREATION_FAILED),
    CheckStep("check_auth", Stage.CHECK_AUTH, Code.LOCAL_AUTHENTICATION_MISSING, Code.LOCAL_AUTHENTICATION_UNAVAILABLE),
    CheckStep("get_auth", Stage.GET_AUTH, Code.LOCAL_AUTHENTICATION_UNAVAILABLE, Code.LOCAL_AUTHENTICATION_UNAVAILABLE),
    CheckStep("availability", Stage.AVAILABILITY, Code.MODEL_UNAVAILABLE, Code.PI_SESSION_CREATION_FAILED),
)
"""In the order in which they are asked."""
