"""A Pi for tests that are not about Pi: a small SDK whose answer is always yes, and what Node says of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.host.process import SCRIPT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CLASSES: Final = """
export class ModelRuntime {
  static async create() { return new ModelRuntime(); }
  streamSimple() {}
  getError() {}
  getProvider() { return {}; }
  getModel(provider, id) { return { provider, id }; }
  async checkAuth() { return {}; }
  async getAuth() { return {}; }
  async getAvailable() { return [{ provider: "p", id: "m" }]; }
}
export class DefaultResourceLoader { async reload() {} }
export const SettingsManager = { inMemory: () => ({}) };
export const SessionManager = { inMemory: () => ({}) };
export async function createAgentSession({ model, thinkingLevel }) {
  return { session: { model, thinkingLevel, dispose() {} } };
}
export const getAgentDir = () => process.env.PI_CODING_AGENT_DIR;
"""
EXPORTS: Final = re.findall(r'^  "(\w+)",$', SCRIPT.with_name("sdk.mjs").read_text(), re.MULTILINE)
"""The exports of the SDK that a host uses."""
YES: Final = {"provider": True, "model": True, "check_auth": True, "get_auth": True, "availability": True}


def sdk_source(version: str) -> str:
    """The source of a whole SDK that knows every provider and model."""
    rest = [name for name in EXPORTS if not re.search(rf"\b{name}\b", _CLASSES) and name != "VERSION"]
    lines = [f"export const {name} = () => {{}};" for name in rest]
    return "\n".join([f"export const VERSION = {json.dumps(version)};", _CLASSES, *lines, ""])


def judged(found: Mapping[str, bool | None], *, unseen: str | None = None, level: str | None = None) -> dict[str, Any]:
    """What Pi says of the first selection."""
    return {"selection": 0, "found": found, "unseen": unseen, "level": level}


WELL: Final = judged(YES, level="off")


def answers(
    *judgements: dict[str, Any],
    faults: Sequence[str] = (),
    proxies: bool = True,
    proxy_setting: bool = False,
    left_out: Sequence[str] = (),
    missing: Sequence[str] = (),
    node: str = "v24.19.0",
) -> str:
    """Everything that `judge.mjs` says, in this world."""
    lines = [
        {"faults": list(faults), "proxies": proxies, "configured": proxy_setting},
        {"workspace": 0, "instructions": list(left_out)},
        {"greeting": {"node": node, "sdk": "1.6.0", "missing": list(missing)}},
        *judgements,
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)
