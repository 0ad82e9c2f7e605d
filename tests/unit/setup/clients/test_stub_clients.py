"""The stub clients answer the recorded calls as the real clients did, and misbehave as they are told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any, Final

import psutil
import pytest

from pi_session_mcp.setup.clients.base import ClientOutput
from tests.support.stub_client import ClientName, StubHome, install_stub_clients
from tests.support.trees import WAIT_S
from tests.unit.setup.clients.recordings import Recorded, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "pi-session-mcp"
LAST: Final[dict[ClientName, tuple[str, str]]] = {
    "claude": ("claude-code", "2.1.332"),
    "codex": ("codex", "0.171.0"),
    "copilot": ("github-copilot-cli", "1.0.102"),
}
SEQUENCES: Final[dict[str, tuple[ClientName, list[str]]]] = {
    "claude-user": (
        "claude",
        [
            *("absent-no-servers", "remove-absent-user", "add-user", "get-user", "get-absent-with-other-user"),
            *("add-user-again-identical", "add-user-again-other-command", "get-user-after-second-add"),
            *("remove-user-wrong-scope-local", "remove-user-wrong-scope-project", "remove-user"),
            *("get-user-after-remove", "remove-user-twice"),
        ],
    ),
    "claude-local": (
        "claude",
        ["add-local", "get-local", "add-local-again-identical", "remove-local-wrong-scope-user", "remove-local"],
    ),
    "claude-project": (
        "claude",
        ["add-project", "get-project", "add-project-again-identical", "remove-project", "get-project-after-remove"],
    ),
    "claude-extra-environment": ("claude", ["add-extra-env", "get-extra-env"]),
    "claude-two-arguments": ("claude", ["add-one-arg-with-space", "get-one-arg-with-space"]),
    "claude-greedy-variable": ("claude", ["add-user-env-before-name", "get-after-env-before-name"]),
    "codex": (
        "codex",
        [
            *("absent-no-servers", "remove-absent", "add", "get-json", "get-absent-with-other", "add-again-identical"),
            *("add-again-other-command", "get-after-overwrite", "remove", "get-after-remove", "remove-twice"),
            *("add-no-env", "get-no-env", "add-two-args", "get-two-args"),
        ],
    ),
    "copilot": ("copilot", ["get-absent", "remove-absent", "add", "get", "get-absent-with-other", "remove"]),
}


def call_named(client: ClientName, label: str) -> Recorded:
    family, version = LAST[client]
    return next(call for call in recorded(family) if (call.version, call.label) == (version, label))


class Stubs:
    """A stub home and a project in it, with the real paths behind the placeholders."""

    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        self.project.mkdir()
        self.home: StubHome = install_stub_clients(directory / "home", directory / "bin")
        self.paths = {
            "<EXECUTABLE>": "/opt/ours",
            "<OTHER_EXECUTABLE>": "/opt/theirs",
            "<CONFIG>": "/home/o/c.json",
            "<HOME>": str(self.home.home),
            "<PROJECT>": str(self.project),
        }
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, client: str, *arguments: str) -> subprocess.Popen[bytes]:
        for placeholder, path in self.paths.items():
            arguments = tuple(argument.replace(placeholder, path) for argument in arguments)
        process = subprocess.Popen(
            [str(self.home.programs / client), *arguments],
            cwd=self.project,
            env={**self.home.environ, "MCP_TIMEOUT": "1000"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, client: str, *arguments: str) -> ClientOutput:
        with self.start(client, *arguments) as process:
            stdout, stderr = process.communicate(timeout=WAIT_S)
        for placeholder, path in self.paths.items():
            stdout, stderr = (text.replace(path.encode(), placeholder.encode()) for text in (stdout, stderr))
        return ClientOutput(process.returncode, stdout, stderr)

    def wait_for(self, name: str) -> int:
        """The process id in a file that a stub writes."""
        path = self.home.home / ".stub" / name
        process = psutil.Process()
        for _ in range(int(WAIT_S / 0.01)):
            if path.exists():
                return int(path.read_text())
            process.cpu_percent(0.01)
        raise AssertionError(name)


@pytest.fixture
def stubs(tmp_path: Path) -> Iterator[Stubs]:
    stubs = Stubs(tmp_path)
    yield stubs
    for process in stubs.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(WAIT_S)


def comparable(output: ClientOutput) -> ClientOutput:
    """Without what the registered server's health was, and how a refusal of malformed words is put."""
    stdout = re.sub(rb"  Status: [^\n]+\n(?:  Issue: [^\n]+\n)?", b"", output.stdout)
    stderr = b"" if b"Invalid environment" in output.stderr else output.stderr
    return ClientOutput(output.exit_code, stdout, stderr)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_stub_answers_as_the_real_client_did(stubs: Stubs, name: str) -> None:
    client, labels = SEQUENCES[name]
    for label in labels:
        call = call_named(client, label)

        output = stubs.run(client, *call.arguments)

        assert comparable(output) == comparable(call.output), label


def test_what_else_is_in_the_files_stays(stubs: Stubs) -> None:
    claude, codex = stubs.home.home / ".claude.json", stubs.home.home / ".codex" / "config.toml"
    claude.write_text(json.dumps({"theme": "dark", "mcpServers": {"other": {"type": "stdio", "command": "o"}}}))
    codex.write_text("# mine\nmodel = 'x' # keep\n\n[mcp_servers.other]\ncommand = 'o'\n")
    before = json.loads(claude.read_text()), codex.read_text()

    stubs.run("claude", "mcp", "add", "--scope", "user", "-e", "K=V", "--", NAME, "/p", "serve")
    stubs.run("codex", "mcp", "add", NAME, "--env", "K=V", "--", "/p", "serve")
    assert json.loads(claude.read_text()) != before[0]
    stubs.run("claude", "mcp", "remove", "--scope", "user", "--", NAME)
    stubs.run("codex", "mcp", "remove", NAME)

    assert (json.loads(claude.read_text()), codex.read_text()) == before


def test_every_call_is_noted(stubs: Stubs) -> None:
    stubs.run("codex", "mcp", "get", NAME, "--json")
    stubs.run("claude", "mcp", "get", NAME)

    assert [(call["client"], call["arguments"][1]) for call in stubs.home.calls()] == [
        ("codex", "get"),
        ("claude", "get"),
    ]
    assert stubs.home.calls()[0]["directory"] == str(stubs.project)
    assert stubs.home.verbs("codex") == ["get"]


ADD: Final = ("mcp", "add", NAME, "--env", "K=V", "--", "/p", "serve")
GET: Final = ("mcp", "get", NAME, "--json")


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        ({"stdout": ""}, b""),
        ({"chatter": "hello\n"}, b'hello\n{\n  "name"'),
        ({"colours": True}, b"\x1b[1m{\x1b[0m\n"),
        ({"line_ends": "\r\n"}, b'{\r\n  "name"'),
    ],
    ids=str,
)
def test_an_answer_is_disguised_as_told(stubs: Stubs, behaviour: dict[str, Any], expected: bytes) -> None:
    stubs.run("codex", *ADD)
    stubs.home.behave("codex", "get", **behaviour)

    stdout = stubs.run("codex", *GET).stdout

    assert stdout.startswith(expected)
    assert bool(stdout) == bool(expected)


def test_an_answer_is_padded_to_its_size(stubs: Stubs) -> None:
    stubs.home.behave("codex", "get", kib=33)

    assert len(stubs.run("codex", *GET).stdout) == 33 * 1024


def test_an_endless_answer_ends_with_its_reader(stubs: Stubs) -> None:
    stubs.home.behave("codex", "get", forever=True)
    process = stubs.start("codex", *GET)
    assert process.stdout
    assert process.stderr

    process.stdout.read(1024 * 1024)
    process.stdout.close()
    process.stderr.close()

    assert process.wait(WAIT_S) != 0


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_held_stub_stops_at_its_change_and_goes_on_when_released(stubs: Stubs, where: str) -> None:
    stubs.home.behave("codex", "add", **{f"hold_{where}": True})
    with stubs.start("codex", *ADD) as process:
        assert stubs.wait_for(f"held.{where}") == process.pid
        written = NAME in (stubs.home.home / ".codex" / "config.toml").read_text() if where == "after" else False
        assert written == (where == "after")
        stubs.home.release()
        process.communicate(timeout=WAIT_S)

    assert process.returncode == 0
    assert stubs.run("codex", *GET).exit_code == 0


def test_a_stub_that_ignores_term_takes_only_kill(stubs: Stubs) -> None:
    stubs.home.behave("codex", "add", ignores_term=True, hold_before=True)
    with stubs.start("codex", *ADD) as process:
        stubs.wait_for("held.before")
        process.terminate()
        process.send_signal(signal.SIGINT)
        stubs.home.release()
        process.communicate(timeout=WAIT_S)

    assert process.returncode == 0


@pytest.mark.parametrize("closes", [False, True], ids=["keeps", "closes"])
@pytest.mark.parametrize("kind", ["child", "session", "daemon"])
def test_a_descendant_stays_behind_as_told(stubs: Stubs, kind: str, *, closes: bool) -> None:
    stubs.home.behave("codex", "add", leaves=kind, closes_descriptors=closes)
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [str(stubs.home.programs / "codex"), *ADD],
        cwd=stubs.project,
        env=dict(stubs.home.environ),
        stdout=subprocess.DEVNULL,
        pass_fds=(writing,),
        start_new_session=True,
    )
    stubs.started.append(process)
    os.close(writing)
    descendant = psutil.Process(stubs.wait_for("left"))
    try:
        process.wait(WAIT_S)
        assert (os.getpgid(descendant.pid) == process.pid) == (kind == "child")
        descendant.terminate()
        assert descendant.is_running()
        assert has_ended(reading) == closes
    finally:
        descendant.kill()
        os.close(reading)


def has_ended(reading: int) -> bool:
    """Whether nobody holds the other end of a pipe any more."""
    os.set_blocking(reading, False)
    try:
        return os.read(reading, 1) == b""
    except BlockingIOError:
        return False
