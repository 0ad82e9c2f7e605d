"""Asking Pi about its own files and about what the profiles select: one run of Node, which can write and run nothing.

`host/js/judge.mjs` answers, with the same code that starts a session.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.doctor.pi_answer import PiAnswer, Profile
from pi_session_mcp.errors import Code
from pi_session_mcp.host.protocol import PROTOCOL_VERSION, HelloResult, LeftOut, PiFault
from pi_session_mcp.host.selection import CHECKS, acceptable, level_refusal
from pi_session_mcp.host.variables import host_variables
from pi_session_mcp.platform.brief_run import run
from pi_session_mcp.platform.text import utf8_text
from pi_session_mcp.runtime.locate import bundle_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pi_session_mcp.config.model import ExecutionProfile
    from pi_session_mcp.doctor.installation import Installation
    from pi_session_mcp.runtime.locate import Sdk

SCRIPT: Final = Path(__file__).parents[1] / "host" / "js" / "judge.mjs"
_ANSWER_LIMIT_BYTES: Final = 4 * 1024 * 1024
_GUARDED: Final = ("--permission", "--allow-fs-read=*")
"""With these Node refuses to write a file, run a program or load native code (22.13 and newer)."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Files(_Said):
    faults: list[Annotated[PiFault, Field(strict=False)]]
    proxies: bool
    configured: bool


class _Instructions(_Said):
    workspace: int
    instructions: list[LeftOut]


class _Greeting(_Said):
    node: str
    sdk: str
    missing: list[str]


class _Greeted(_Said):
    greeting: _Greeting


class _Judged(_Said):
    selection: int
    found: dict[str, bool | None]
    unseen: Literal["command", "renewal"] | None
    level: str | None


_Line = _Files | _Instructions | _Greeted | _Judged


def ask_pi(here: Installation, node: Path, sdk: Sdk) -> PiAnswer:
    """Ask once about all profiles and workspaces. What is not answered is not known."""
    profiles = here.configuration.execution_profiles if here.configuration else {}
    workspaces = here.configuration.workspaces if here.configuration else {}
    bundle = bundle_of(sdk)
    named = {alias: text for alias, path in workspaces.items() if (text := utf8_text(path)) is not None}
    selections = list(dict.fromkeys(profile.selection for profile in profiles.values()))
    question = {
        "sdk": utf8_text(sdk.entry),
        "bundle": None if bundle is None else utf8_text(bundle),
        "selections": [one.to_json() for one in selections],
        "workspaces": list(named.values()),
        "stepMs": round(DEADLINES.check_step_s * 1000),
    }
    said = run(
        (str(node), *_GUARDED, str(SCRIPT)),
        host_variables(here.asked, here.environ, here.cwd, tools=None),
        given=json.dumps(question).encode(),
        within_s=DEADLINES.doctor_pi_s,
        limit_bytes=_ANSWER_LIMIT_BYTES,
    )
    lines = list(_understood(said.text))
    files = [line for line in lines if isinstance(line, _Files)]
    judged = {line.selection: line for line in lines if isinstance(line, _Judged)}
    return PiAnswer(
        sdk_loads=_sdk_loads(lines),
        files=tuple(fault for line in files for fault in line.faults) if files else None,
        proxies=all(line.proxies for line in files),
        proxy_setting=any(line.configured for line in files),
        left_out=_left_out(lines, tuple(named)),
        profiles=tuple(
            _profile(alias, profile, judged.get(selections.index(profile.selection)))
            for alias, profile in profiles.items()
        ),
    )


def _left_out(lines: Sequence[_Line], aliases: tuple[str, ...]) -> Mapping[str, bool]:
    """For each workspace that was looked at, whether files of instructions would be left out."""
    seen = [line for line in lines if isinstance(line, _Instructions) and 0 <= line.workspace < len(aliases)]
    return {aliases[line.workspace]: bool(line.instructions) for line in seen}


def _profile(alias: str, profile: ExecutionProfile, judged: _Judged | None) -> Profile:
    may_be_extended = bool(profile.extensions)
    if judged is None:
        return Profile(alias, answered=False, may_be_extended=may_be_extended)
    refused = _refusal(judged, profile.thinking_level)
    return Profile(alias, refused=refused, unasked=judged.unseen, may_be_extended=may_be_extended)


def _refusal(judged: _Judged, thinking_level: str) -> Code | None:
    """The code with which a start would be refused, by the same rules as a start."""
    for step in CHECKS:
        if step.step == "get_auth" and judged.unseen is not None:
            continue
        code = step.refusal(found=judged.found.get(step.step))
        if code is not None:
            return code
    return Code.PI_SESSION_CREATION_FAILED if judged.level is None else level_refusal(thinking_level, judged.level)


def _sdk_loads(lines: Sequence[_Line]) -> bool:
    said = next((line.greeting for line in lines if isinstance(line, _Greeted)), None)
    if said is None:
        return False
    return acceptable(HelloResult(protocol=PROTOCOL_VERSION, node=said.node, sdk=said.sdk, missing=said.missing))


def _understood(text: bytes) -> Iterator[_Line]:
    """Each complete line, up to the first that `judge.mjs` would not write."""
    for line in text.split(b"\n")[:-1]:
        for kind in (_Files, _Instructions, _Greeted, _Judged):
            try:
                yield kind.model_validate_json(line)
                break
            except ValidationError:
                continue
        else:
            return
