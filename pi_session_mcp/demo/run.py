"""The demonstration itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_session_mcp.demo.report import DemoReport, OnStep


def run(on_step: OnStep) -> DemoReport:
    """Run every step, telling `on_step` of each; what fails is a step with `ok=False`, not an exception."""
    raise NotImplementedError
