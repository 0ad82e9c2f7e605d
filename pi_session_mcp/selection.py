"""Which model a session works with. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """A provider, one of its models, and how much the model thinks: as configured, or as Pi really uses it."""

    provider: str
    model: str
    thinking_level: str

    def to_json(self) -> dict[str, str]:
        """The three fields, as every tool, report and frame names them."""
        return {"provider": self.provider, "model": self.model, "thinkingLevel": self.thinking_level}
