"""The host protocol: every frame between the server and a Pi host, as values. Pure.

One JSON object a line, UTF-8, framed by `\\n` only, at most `MAX_FRAME_BYTES`. The server sends requests
(`{"id", "op", …}`); the host sends exactly one answer for each (`{"re", "ok", …}`), and events
(`{"event", "session", …}`). For granted tools the host sends calls (`{"call", "session", …}`) and may take them back
(`{"cancel", "session"}`); the server says of each call once how it ended (`{"done", …}`).
`host/js/frames.mjs` holds the same schema for the other side; `docs/host-protocol.md` explains it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic_core import from_json

from pi_session_mcp.terms.selection import Selection

PROTOCOL_VERSION: Final = 1
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
CHANNEL_FD: Final = 3
"""The host's descriptor of the channel. Node closes low inherited descriptors on exec, so 3 does not leak to bash."""


class _Frame(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# --- requests -------------------------------------------------------------------------------------------------------


class Hello(_Frame):
    """First request on a channel. `sdk` is the absolute path of the SDK's entry file.

    `bundle` is the same SDK in one file, which loads in less than half of the time. The SDK does not publish it as an
    entry, so a host takes it only if it has every export that is needed. `python` runs the owners of the sessions'
    commands.
    """

    op: Literal["hello"] = "hello"
    protocol: int = PROTOCOL_VERSION
    sdk: str
    bundle: str | None = None
    compileCache: str | None = None
    python: str | None = None


class Load(_Frame):
    """Make the session's model runtime, settings and resources. `entries` are extension files, absolute."""

    op: Literal["load"] = "load"
    session: int
    cwd: str
    fileAccess: Literal["workspace", "user"]
    entries: list[str] = []


CheckName: TypeAlias = Literal["provider", "model", "check_auth", "get_auth", "availability"]


def _selection(said: object) -> object:
    match said:
        case {"provider": str(provider), "model": str(model), "thinkingLevel": str(level), **rest} if not rest:
            return Selection(provider, model, level)
        case _:
            return said


_Selection: TypeAlias = Annotated[Selection, BeforeValidator(_selection), PlainSerializer(Selection.to_json)]


class Check(_Frame):
    """Ask questions about the profile's selection, in this order and until the first no.

    A `checked` event follows each yes, so that it can be told which question has no answer.
    """

    op: Literal["check"] = "check"
    session: int
    steps: list[CheckName]
    selection: _Selection


class Grant(_Frame):
    """A tool that the server runs: what the model sees of it. `parameters` is its JSON Schema."""

    name: str
    description: str
    parameters: dict[str, object]


class Open(_Frame):
    """Create the Pi session with exactly these active tools; `grants` describes those that the server runs."""

    op: Literal["open"] = "open"
    session: int
    selection: _Selection
    tools: list[str]
    grants: list[Grant] = []


class Bind(_Frame):
    """Bind the session's extensions (emits `session_start`); only for a session with entries, and only once."""

    op: Literal["bind"] = "bind"
    session: int


class Prompt(_Frame):
    """Hand a text to Pi. The answer is the preflight. If that is `started`, a `settled` event follows at the end."""

    op: Literal["prompt"] = "prompt"
    session: int
    turn: int
    text: str


class Abort(_Frame):
    """Abort what runs. Answered when that has settled."""

    op: Literal["abort"] = "abort"
    session: int


class Dispose(_Frame):
    """End the session at whatever step it is. Answered when that is done, also for an unknown session."""

    op: Literal["dispose"] = "dispose"
    session: int


class Ping(_Frame):
    """Show that the host's event loop turns."""

    op: Literal["ping"] = "ping"


Request = Hello | Load | Check | Open | Bind | Prompt | Abort | Dispose | Ping


HELLO_ID: Final = 1
"""The greeting is sent when a host is started, before the server listens to it."""


def encode_request(request_id: int, request: Request) -> bytes:
    """The request as one line. Raises `ValueError` if it is longer than a frame may be."""
    body = request.model_dump_json()
    line = b'{"id":%d,%s\n' % (request_id, body[1:].encode())
    if len(line) > MAX_FRAME_BYTES:
        raise ValueError("frame too large")
    return line


class Image(_Frame):
    """An image, as base64. A model that takes images gets it in place of text number `at`."""

    at: int
    data: str
    mimeType: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


class Done(_Frame):
    """How a call has ended: the texts for the model, or the one text of a failed call; `details` stay beside them."""

    done: int
    failed: bool
    texts: list[str]
    details: object = None
    images: list[Image] = []


def encode_done(done: Done) -> bytes:
    """The frame as one line."""
    return done.model_dump_json(exclude=None if done.images else {"images"}).encode() + b"\n"


# --- answers --------------------------------------------------------------------------------------------------------


class PiFault(StrEnum):
    """Why one of the files in Pi's agent directory cannot be used: its name and what is wrong with it.

    `refused` is valid JSON that Pi does not take, or a setting that has no meaning.
    """

    MODELS_UNREADABLE = "models_unreadable"
    MODELS_NOT_JSON = "models_not_json"
    MODELS_REFUSED = "models_refused"
    AUTH_UNREADABLE = "auth_unreadable"
    AUTH_NOT_JSON = "auth_not_json"
    SETTINGS_UNREADABLE = "settings_unreadable"
    SETTINGS_NOT_JSON = "settings_not_json"
    SETTINGS_REFUSED = "settings_refused"

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.value.partition('_')[0]}.json"


class Failed(_Frame):
    """The request failed. `code` is a word of the host's; a foreign text never passes.

    `exists`, `unknown_session`, `order` and `invalid` are defects of ours. `workspace`: the directory is gone.
    `pi_configuration`: Pi's own files are broken, and `reason` says which file. `proxy`: the environment names a proxy
    that cannot be one. `sdk_import`: the SDK could not be imported. `failed`: everything else.
    """

    re: int
    ok: Literal[False]
    code: Literal[
        "failed",
        "workspace",
        "pi_configuration",
        "proxy",
        "sdk_import",
        "unknown_session",
        "exists",
        "order",
        "invalid",
    ]
    reason: Annotated[PiFault, Field(strict=False)] | None = None


class Succeeded(_Frame):
    """The request succeeded; `result` is validated against the request's own result type."""

    re: int
    ok: Literal[True]
    result: dict[str, object]


class HelloResult(_Frame):
    """Versions, and the exports that we use (`js/sdk.mjs`) and the SDK does not have."""

    protocol: int
    node: str
    sdk: str
    missing: list[str]


class RegisteredTool(_Frame):
    """A tool of an extension. `entry` is the extension's place in `Load.entries`, or -1 when it has none."""

    name: str
    entry: int


LeftOut: TypeAlias = Literal["not_a_file", "too_large", "outside", "foreign_owner", "unreadable"]
"""Why a file of instructions (`AGENTS.md` and the like) is not given to the model, although it exists."""


class LoadResult(_Frame):
    """How many extensions were loaded, how many errors were reported, and the tools that they registered.

    `failed` are the places in `Load.entries` of those that had an error. `leftOut` has a reason for each file of
    instructions, in the workspace and above it, that exists and is left out.
    """

    extensions: int
    errors: int
    tools: list[RegisteredTool]
    failed: list[int]
    leftOut: list[LeftOut]


class CheckResult(_Frame):
    """Whether every question was answered with yes: known, authenticated, available."""

    found: bool


class OpenResult(_Frame):
    """What the created session really has."""

    selection: _Selection
    activeTools: list[str]


class BindResult(_Frame):
    """What the session has after binding.

    `failed` are the places, in `Load.entries`, of those whose hook failed or that registered an MCP server.
    """

    selection: _Selection
    activeTools: list[str]
    extensionTools: list[RegisteredTool]
    hookErrors: int
    mcpServers: int
    failed: list[int]


class PromptResult(_Frame):
    """Pi's preflight word; `rejected` when `prompt()` threw or ended without one."""

    preflight: Literal["started", "queued", "handled", "rejected"]


class Empty(_Frame):
    """The request is done, and there is nothing to tell."""


Result = HelloResult | LoadResult | CheckResult | OpenResult | BindResult | PromptResult | Empty


# --- events ---------------------------------------------------------------------------------------------------------


class Checked(_Frame):
    """One question of a `Check` was answered with yes."""

    event: Literal["checked"]
    session: int
    step: CheckName


class Activity(_Frame):
    """A tool execution or an assistant message of this turn was completed."""

    event: Literal["activity"]
    session: int
    turn: int


class Settled(_Frame):
    """The turn's `prompt()` resolved. See `sessions.outcome.Outcome`; `text` is at most `MAX_TEXT_UNITS` long."""

    event: Literal["settled"]
    session: int
    turn: int
    stopReason: str | None
    aborted: bool
    text: str


class Run(_Frame):
    """A run that did not begin with a prompt of the server has started or ended."""

    event: Literal["run"]
    session: int
    active: bool


class Call(_Frame):
    """The model calls a granted tool. Numbers rise, over all sessions of a host.

    `arguments` and `given` are JSON texts: the arguments as Pi has fitted them to the schema, and as the model wrote
    them.
    """

    call: int
    session: int
    tool: str
    arguments: str
    given: str


class Cancel(_Frame):
    """The host does not wait for this call any more. It may have ended already; the host then ignores its `Done`."""

    cancel: int
    session: int


MAX_TEXT_UNITS: Final = 1024 * 1024
"""The host cuts an answer to this many UTF-16 units; the rule of 65,536 bytes is applied by the server."""

SessionFrame = Checked | Activity | Settled | Run | Call | Cancel
"""What a host says of one session without being asked."""
HostFrame = Failed | Succeeded | SessionFrame

_EVENTS: Final[dict[str, type[Checked | Activity | Settled | Run]]] = {
    "checked": Checked,
    "activity": Activity,
    "settled": Settled,
    "run": Run,
}


def decode_host_frame(line: bytes) -> HostFrame:
    """Parse one line of a host. Raises `ValueError` (pydantic's is one) for anything that is not a frame."""
    frame = from_json(line, allow_inf_nan=False)
    if not isinstance(frame, dict):
        raise ValueError("not an object")  # noqa: TRY004 - a bad frame is one kind of error
    if "event" in frame:
        kind = _EVENTS.get(str(frame["event"]))
        if kind is None:
            raise ValueError("unknown event")
        return kind.model_validate(frame)
    if "call" in frame:
        return Call.model_validate(frame)
    if "cancel" in frame:
        return Cancel.model_validate(frame)
    return (Succeeded if frame.get("ok") is True else Failed).model_validate(frame)
