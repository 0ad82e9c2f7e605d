"""Which model a session works with. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
THINKING_LEVELS: Final[tuple[str, ...]] = get_args(ThinkingLevel)
"""From the least to the most."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A provider, one of its models, and how much the model thinks: as configured, or as Pi really uses it."""

    provider: str
    model: str
    thinking_level: str

    def to_json(self) -> dict[str, str]:
        """The three fields, as every tool, report and frame names them."""
        return {"provider": self.provider, "model": self.model, "thinkingLevel": self.thinking_level}
