"""The text of a first configuration, and how it is put in place without replacing anything."""

from __future__ import annotations

import json
import os
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.platform.files import sync_descriptor, sync_directory
from pi_session_mcp.platform.text import shown_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pi_session_mcp.terms.selection import Selection

READ_ONLY_PROFILE: Final = "read-only"
CODING_PROFILE: Final = "coding"
_LONGEST_ALIAS: Final = 64


@dataclass(frozen=True, slots=True)
class Initial:
    """What a first configuration says. Paths are absolute."""

    workspaces: Mapping[str, Path]
    selection: Selection
    coding: bool
    pi_agent_directory: Path | None = None


def text_of(initial: Initial) -> bytes:
    """The bytes of the file: indented JSON, with any names in it."""
    document: dict[str, Any] = {
        "workspaces": {alias: shown_text(path) for alias, path in initial.workspaces.items()},
        "executionProfiles": {READ_ONLY_PROFILE: {"default": True, **_profile(initial, "read-only")}},
    }
    if initial.coding:
        document["executionProfiles"][CODING_PROFILE] = _profile(initial, "coding")
    if initial.pi_agent_directory is not None:
        document["piAgentDirectory"] = shown_text(initial.pi_agent_directory)
    return json.dumps(document, indent=2).encode() + b"\n"


def profiles_of(initial: Initial) -> tuple[str, ...]:
    """The aliases of its execution profiles, the default first."""
    return (READ_ONLY_PROFILE, CODING_PROFILE) if initial.coding else (READ_ONLY_PROFILE,)


def alias_for(name: str) -> str:
    """An alias that a directory of this name suggests."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-_")
    return re.sub(r"^[^a-z]*", "", plain)[:_LONGEST_ALIAS] or "workspace"


def create(path: Path, content: bytes) -> None:
    """Make the file at `path`, whole, durable and with mode 0600. An existing file stays as it is.

    The content is written to another name first and gets its own by a link, which never replaces a file. Half a
    configuration would block the next attempt. Raises `FileExistsError`, or another `OSError`.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            sync_descriptor(file.fileno())
        os.link(temporary, path)
    finally:
        os.unlink(temporary)
    sync_directory(path.parent)


def _profile(initial: Initial, permission: str) -> dict[str, Any]:
    return {"permissionProfile": permission, **initial.selection.to_json()}
