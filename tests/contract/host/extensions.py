"""Extensions that tests write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Extension = Callable[..., Path]
"""Writes an extension whose factory has this body; a second argument is the file's name."""
Notes = Callable[[], list[str]]
"""The lines that extensions have noted so far."""

TOOL = """
const tool = (name, text) => ({
  name, label: "t", description: "d", parameters: { type: "object", properties: {} },
  execute: async () => ({ content: [{ type: "text", text }] }),
});
"""
