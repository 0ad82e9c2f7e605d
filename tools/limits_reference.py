"""The tables in docs/limits.md: every bound that a user can meet, with its value as the program has it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_session_mcp.bridge import allowance, images, judge_program, outbox, results, servers
from pi_session_mcp.bridge import catalog as bridge_catalog
from pi_session_mcp.bridge import frames as bridge_frames
from pi_session_mcp.config import model, rules
from pi_session_mcp.deadlines import DEADLINES
from pi_session_mcp.extensions import dependencies, entries, manifest
from pi_session_mcp.host import client, protocol
from pi_session_mcp.runtime import compile_cache
from pi_session_mcp.server import catalog
from pi_session_mcp.server.wire import frames, in_flight, plain_json
from pi_session_mcp.sessions import answer, registry, session
from pi_session_mcp.sessions.hosted import hosted_session
from pi_session_mcp.setup import guardian, ownership
from pi_session_mcp.setup.clients import base
from pi_session_mcp.terms import pin, strict_json
from tools import waits
from tools.generated import Generated

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: Final = Path("docs/limits.md")
BEGIN: Final = "<!-- The tables below are written by tools/generate.py. -->\n"
END: Final = "<!-- End of the tables. -->\n"
_HOST: Final = Path(__file__).parents[1] / "pi_session_mcp" / "host" / "js"


@dataclass(frozen=True, slots=True)
class Bound:
    """What is bounded, by how much in words, and what happens to what passes it."""

    what: str
    value: str
    beyond: str


def files() -> Iterator[Generated]:
    """The document with one table for each part of the program."""
    tables = (*(_table(title, rows) for title, rows in bounds().items()), _every_wait())
    yield Generated(DOCUMENT, "\n".join(tables), (BEGIN, END))


def _table(title: str, rows: tuple[Bound, ...]) -> str:
    lines = "".join(f"| {row.what} | {row.value} | {row.beyond} |\n" for row in rows)
    return f"## {title}\n\n| What | Bound | Beyond it |\n| --- | ---: | --- |\n{lines}"


def _every_wait() -> str:
    package = "".join(f"| `{one.name}` | {_bounds(one)} | {one.says} |\n" for one in waits.of_the_package())
    others = "".join(
        f"| `{one.place}` | `{one.name}` | {_bounds(one)} | {one.says} |\n" for one in waits.of_standalone_programs()
    )
    return (
        "## Every wait, by its name in the program\n\n"
        "For readers of the code: the whole of `pi_session_mcp/deadlines.py`, whose order this is.\n\n"
        f"| Name | Bound | What it bounds |\n| --- | ---: | --- |\n{package}\n"
        "The keeper's programs and the Pi host run without the package, and have theirs at the top of each file:\n\n"
        f"| File | Name | Bound | What it bounds |\n| --- | --- | ---: | --- |\n{others}"
    )


def _bounds(wait: waits.Wait) -> str:
    return " or ".join(map(seconds, wait.bounds_s))


def size(count: int) -> str:
    """Bytes in the largest unit that divides them."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor and count % factor == 0:
            return f"{count // factor:,} {unit}"
    return f"{count:,} bytes"


def seconds(count: float) -> str:
    """A time as people say it."""
    if count >= 60 and count % 60 == 0:
        return f"{count / 60:g} min"
    return f"{count:g} s" if count >= 1 else f"{count * 1000:g} ms"


def of_host(module: str, name: str) -> int:
    """The value of a constant in the host's JavaScript, a product of whole numbers."""
    text = (_HOST / module).read_text(encoding="utf-8")
    found = re.search(rf"^(?:export )?const {name} = ([0-9_ *]+);", text, re.MULTILINE)
    assert found is not None, f"{module} has no {name}"
    return reduce(lambda product, factor: product * int(factor), found[1].split("*"), 1)


def bounds() -> dict[str, tuple[Bound, ...]]:
    """Every table by its title, in the order of the document."""
    return {
        "The configuration": _configuration(),
        "What a client sends": _client(),
        "Sessions, turns and answers": _sessions(),
        "What is waited for": _waits(),
        "Built-in tools of a session": _tools(),
        "Granted tools of external MCP servers": _bridge(),
        "Pi extensions": _extensions(),
        "Pi hosts": _hosts(),
        "Operators' commands": _commands(),
    }


def _configuration() -> tuple[Bound, ...]:
    refused = "the file is refused"
    return (
        Bound("the file", size(rules.MAX_FILE_BYTES), refused),
        Bound("depth of nesting", f"{strict_json.MAX_NESTING}", refused),
        Bound("characters of a number", f"{strict_json.MAX_NUMBER_CHARACTERS}", refused),
        Bound("external MCP servers of a profile", f"{model.MAX_SERVERS}", refused),
        Bound("granted tools of a profile", f"{model.MAX_GRANTS}", refused),
        Bound("arguments of an external MCP server", f"{model.MAX_ARGUMENTS}", refused),
        Bound("variables of an external MCP server", f"{model.MAX_VARIABLES}", refused),
        Bound("pinned extensions of a profile", f"{model.MAX_PINS}", refused),
        Bound("characters of a pin", f"{pin.MAX_PIN_CHARACTERS}", refused),
        Bound(
            "open sessions of one server, unless `limits.maxSessions` says otherwise (at most 256)",
            f"{model.DEFAULT_MAX_SESSIONS}",
            "`session_limit_reached`",
        ),
    )


def _client() -> tuple[Bound, ...]:
    return (
        Bound("one line", size(frames.MAX_LINE_BYTES), "JSON-RPC error -32600"),
        Bound("depth of nesting", f"{plain_json.MAX_DEPTH}", "read as `null`"),
        Bound("digits of an integer", f"{plain_json.MAX_DIGITS:,}", "read as infinite"),
        Bound("requests under way", f"{in_flight.MAX_REQUESTS:,}", "JSON-RPC error -32600, under its id"),
        Bound("bytes of requests under way", size(in_flight.MAX_BYTES), "the same"),
        Bound("a prompt", f"{catalog.PROMPT_MAX_CHARACTERS:,} characters", "`invalid_arguments`"),
        Bound("`waitMs`", f"{catalog.WAIT_MAX_MS:,} ms", "`invalid_arguments`"),
    )


def _sessions() -> tuple[Bound, ...]:
    return (
        Bound("an answer (`assistantText`)", size(answer.MAX_ANSWER_BYTES), "it is cut, and `truncated` is true"),
        Bound("turns that a session keeps", f"{session.MAX_TURNS}", "the oldest is forgotten: `unknown_turn`"),
        Bound(
            "closed sessions that a second close still answers",
            f"{registry.MAX_TOMBSTONES}",
            "the oldest is forgotten: `unknown_session`",
        ),
        Bound("progress of a waiting call", f"one in {seconds(DEADLINES.progress_interval_s)}", "the rest is not sent"),
        Bound("one context file (`AGENTS.md`)", size(of_host("context.mjs", "MAX_CONTEXT_BYTES")), "it is left out"),
    )


def _waits() -> tuple[Bound, ...]:
    started = "the start is refused with the step's code"
    return (
        Bound("each question about provider, model and credentials", seconds(DEADLINES.check_step_s), started),
        Bound("each step of Pi's at a start (load, open, bind)", seconds(DEADLINES.creation_step_s), started),
        Bound("Pi's word that it takes a prompt", seconds(DEADLINES.preflight_s), "`prompt_timeout`"),
        Bound("an abort, for each caller", seconds(DEADLINES.abort_s), "`abort_timeout`; the session's host is ended"),
        Bound("a close", seconds(DEADLINES.close_s), "the session's host is ended"),
        Bound(
            "all sessions, at the end of the server", seconds(DEADLINES.registry_shutdown_s), "their hosts are ended"
        ),
        Bound(
            "the server's end, from the signal or the end of input",
            seconds(DEADLINES.process_shutdown_s),
            "the process exits, whatever is left to do; keepers end the rest",
        ),
    )


def _tools() -> tuple[Bound, ...]:
    def of(name: str) -> int:
        return of_host("bounds.mjs", name)

    whole, ended = size(of("MAX_WHOLE_FILE_BYTES")), "the tool ends, and says that it took too much"
    return (
        Bound("calls of a session's file tools at a time", f"{of('MAX_CALLS')}", "the others wait"),
        Bound("one call of a file tool", seconds(of("MAX_CALL_MS") / 1000), ended),
        Bound("a path", size(of("MAX_PATH_BYTES")), "the tool refuses the path"),
        Bound(
            "links on the way to a file", f"{of_host('real_location.mjs', 'MAX_LINKS')}", "the tool refuses the path"
        ),
        Bound(
            "a pattern of `grep` or `find`", f"{of('MAX_PATTERN_UNITS'):,} characters", "the tool refuses the pattern"
        ),
        Bound("alternatives in a pattern of `find`", f"{of_host('glob.mjs', 'MAX_ALTERNATIVES'):,}", "the same"),
        Bound("braces within braces in it", f"{of_host('glob.mjs', 'MAX_DEPTH')}", "the same"),
        Bound(
            "a search by `grep` or `find`",
            seconds(of("MAX_SEARCH_MS") / 1000),
            "it shows what it has found, and says that there may be more",
        ),
        Bound(
            "memory of a search, on Linux",
            size(of("MAX_SEARCH_KIB") * 1024),
            "`grep` leaves larger files than 32 MiB out and says so; else the tool says that it took too much",
        ),
        Bound(
            "a file that has to be held as a whole (an image, a file to edit, content to write)",
            whole,
            "the tool says that the file is too large",
        ),
        Bound("lines of a file to edit", f"{of('MAX_EDITED_LINES'):,}", "the same"),
        Bound("an image that Pi's settings have sent as it is", size(of("MAX_UNSCALED_IMAGE_BYTES")), "the same"),
        Bound("text that is read of a file", size(of("MAX_READ_BYTES")), "the tool shows what it has, and says so"),
        Bound("reading it", seconds(of("MAX_READ_MS") / 1000), "the same"),
        Bound("an image, or a large change", seconds(of("MAX_APART_MS") / 1000), ended),
        Bound("memory of a large change", f"{of('MAX_APART_HEAP_MIB')} MiB", ended),
        Bound(
            "memory of an image", size(of("MAX_APART_IMAGE_PAGES") * 64 * 1024), "Pi says that it left the image out"
        ),
        Bound(
            "images and large changes of a host at a time",
            f"{of_host('apart.mjs', 'MAX_PROCESSES')}",
            "the others wait",
        ),
    )


def _bridge() -> tuple[Bound, ...]:
    unavailable = "`external_mcp_unavailable`"
    failed = "the tool call fails"
    judged = "the model is told that its arguments cannot be checked"
    return (
        Bound("all servers of a session until they are ready", seconds(DEADLINES.mcp_startup_s), unavailable),
        Bound("pages of a server's list", f"{bridge_catalog.MAX_PAGES}", unavailable),
        Bound("tools of a server", f"{bridge_catalog.MAX_TOOLS}", unavailable),
        Bound("description and schema of a granted tool", size(bridge_catalog.MAX_DEFINITION_BYTES), unavailable),
        Bound("judging a granted tool's schema", f"{seconds(judge_program.CPU_S)} of a processor", unavailable),
        Bound("judging arguments by a schema", f"{seconds(judge_program.CPU_S)} of a processor", judged),
        Bound("memory of what judges (Linux)", size(judge_program.MEMORY_BYTES), "the same"),
        Bound("a judgement, by the clock", seconds(DEADLINES.mcp_judge_s), "the same"),
        Bound("one message of a server", size(bridge_frames.MAX_FRAME_BYTES), failed),
        Bound("one call", seconds(DEADLINES.mcp_call_s), failed),
        Bound("calls of a session at a time", f"{servers.MAX_CALLS}", failed),
        Bound("arguments of these calls", size(hosted_session.MAX_CALL_BYTES), failed),
        Bound(
            "a result, but for its images and sounds",
            size(results.MAX_RESULT_BYTES),
            "the call fails with a sentence that says so",
        ),
        Bound("images of a result", f"{images.MAX_IMAGES}", "a note stands for each of the others"),
        Bound("pixels of an image", f"{images.MAX_PIXELS:,}", "a note stands for it"),
        Bound(
            "what a server says unasked, at once, and then each second",
            f"{size(allowance.BURST_BYTES)}, {size(allowance.BYTES_EACH_SECOND)}",
            "the server is ended, and its tools fail",
        ),
        Bound(
            f"a line of it over {size(allowance.LONG_BYTES)}",
            f"counts {allowance.LONG_COUNT_TIMES} times",
            "the same",
        ),
        Bound("what each such message counts for beside its length", size(allowance.MESSAGE_BYTES), "the same"),
        Bound(
            "what a server has not read yet",
            f"{size(outbox.MAX_BYTES)}, {outbox.MAX_MESSAGES:,} messages",
            "the server is ended, and its tools fail",
        ),
        Bound(
            "a server's own end, after the end of its input and again after TERM",
            seconds(DEADLINES.mcp_grace_s),
            "it is killed",
        ),
    )


def _extensions() -> tuple[Bound, ...]:
    return (
        Bound("a package's manifest", size(manifest.MAX_MANIFEST_BYTES), "`extension_load_failed`"),
        Bound("files of a package that are loaded", f"{entries.MAX_ENTRIES}", "`extension_load_failed`"),
        Bound("names in one path of a package", f"{entries.MAX_DEPTH}", "`extension_load_failed`"),
        Bound("names that its patterns and folders look at", f"{entries.MAX_VISITED:,}", "`extension_load_failed`"),
        Bound("packages that it depends on", f"{dependencies.MAX_PACKAGES:,}", "the others are not looked at"),
        Bound("loading, opening, binding, each", seconds(DEADLINES.creation_step_s), "`extension_load_failed`"),
    )


def _hosts() -> tuple[Bound, ...]:
    ended = "the host is ended"
    return (
        Bound("start until ready", seconds(DEADLINES.host_start_s), "`pi_runtime_unavailable`"),
        Bound("an answer to a ping, while it owes one", seconds(DEADLINES.host_ping_s), ended),
        Bound("without sessions", seconds(DEADLINES.host_idle_s), ended),
        Bound("one message of the host protocol", size(protocol.MAX_FRAME_BYTES), ended),
        Bound("events and calls at once", f"{client.MAX_FRAMES:,}", ended),
        Bound("events and calls, later", f"{client.FRAMES_A_SECOND:,} in a second", ended),
        Bound("answers to its calls that it does not read", size(client.MAX_UNREAD_BYTES), ended),
        Bound("answers that it owes and nobody waits for", f"{client.MAX_ABANDONED:,}", ended),
        Bound("its own end, once nobody holds its channel", seconds(DEADLINES.host_grace_s), "it is killed"),
        Bound(
            "`bash` commands of a session that run or have left something running",
            f"{of_host('commands.mjs', 'MAX_OWNERS')}",
            "the next one is refused with a sentence that says so",
        ),
        Bound(
            "the end of what a session's `bash` commands have left",
            seconds(of_host("commands.mjs", "END_WITHIN_MS") / 1000),
            "the session is closed all the same",
        ),
    )


def _commands() -> tuple[Bound, ...]:
    return (
        Bound("`setup`: waiting for another setup", seconds(DEADLINES.setup_lock_s), "`lock_busy`"),
        Bound("`setup`: one command of a client", seconds(DEADLINES.setup_command_s), "it is ended; the target fails"),
        Bound("`setup`: output of a client's command", size(guardian.OUTPUT_LIMIT_BYTES), "the same"),
        Bound("`setup`: a client's answer that is read", size(base.ANSWER_LIMIT_BYTES), "`inspect_failed`"),
        Bound("`setup --verify`: the whole handshake", seconds(DEADLINES.verify_s), "`mcp_timeout`"),
        Bound("`setup`: records of registrations", f"{ownership.MAX_RECORDS}", "`ownership_unavailable`"),
        Bound(
            "Node's compile cache", size(compile_cache.MAX_CACHE_BYTES), "the oldest entries are removed, once a day"
        ),
        Bound("`runtime install`", seconds(DEADLINES.install_s), "nothing has changed"),
        Bound("`doctor`: an answer of Node", seconds(DEADLINES.version_s), "Node counts as missing"),
        Bound("`demo`: one step", seconds(DEADLINES.demo_step_s), "the step fails"),
    )
