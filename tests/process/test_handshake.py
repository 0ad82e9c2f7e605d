"""The handshake is answered before anything heavy is loaded, by whoever speaks, in whatever environment."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.server.catalog import TOOLS
from tests.process.client import ENVELOPE, SERVE
from tests.process.conftest import TRIVIAL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.process.conftest import Start

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_of_the_handshake_is_answered_with_itself(start: Start, version: str) -> None:
    child = start()
    result = child.initialize(version)
    tools = child.request("tools/list")["result"]["tools"]

    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "pi-session-mcp"
    assert result["instructions"]
    assert tools == list(TOOLS)
    child.close_stdin()
    assert child.wait() == 0
    assert child.diagnostics == []


@pytest.mark.parametrize(
    "version",
    [VERSIONS[0], *(pytest.param(version, marks=pytest.mark.matrix) for version in VERSIONS[1:-1]), VERSIONS[-1]],
)
def test_each_version_of_the_handshake_works(start: Start, version: str) -> None:
    child = start()
    child.initialize(version)
    assert child.call("pi_session_list") == {"ok": True, "sessions": []}
    assert child.request("tools/list")["result"]["tools"] == list(TOOLS)
    child.close_stdin()
    assert child.wait() == 0
    assert child.diagnostics == []


def test_the_era_without_a_handshake_is_served(start: Start) -> None:
    child = start()
    discovered = child.request("server/discover", {"_meta": ENVELOPE})["result"]
    tools = child.request("tools/list", {"_meta": ENVELOPE})["result"]
    called = child.request("tools/call", {"_meta": ENVELOPE, "name": "pi_session_list", "arguments": {}})["result"]

    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert tools["tools"] == list(TOOLS)
    assert called["structuredContent"] == {"ok": True, "sessions": []}
    assert child.request("server/discover", {"_meta": ENVELOPE})["result"] == discovered
    assert child.request("tools/list", {"_meta": ENVELOPE})["result"] == tools


def test_a_client_that_probes_first_and_then_shakes_hands_is_served(start: Start) -> None:
    child = start()

    assert child.request("server/discover")["error"]["code"] == -32601
    assert child.initialize()["protocolVersion"] == "2025-06-18"
    assert child.call("pi_session_list")["ok"] is True


def test_a_client_that_probes_and_shakes_hands_at_once_gets_both_answers(start: Start) -> None:
    child = start()
    probe = child.start_request("server/discover", {"_meta": ENVELOPE})
    hands = child.start_request("initialize", {"protocolVersion": "2025-11-25"})

    assert "result" in child.answer_to(probe)
    assert child.answer_to(hands)["error"]["code"] == -32022
    assert "result" in child.request("server/discover", {"_meta": ENVELOPE})


def test_a_pipelined_opening_is_answered_in_order_and_once(start: Start) -> None:
    child = start()
    shake = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    child.start_request("initialize", shake)
    child.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for _ in range(3):
        child.start_request("tools/list")
        child.start_request("ping")
    child.start_request("tools/call", {"name": "pi_session_list", "arguments": {}})
    child.start_request("ping")
    child.start_request("tools/list")
    ids = [child.receive()["id"] for _ in range(10)]

    assert ids[:7] == list(range(2, 9))
    assert sorted(ids[7:]) == [9, 10, 11]
    child.close_stdin()
    assert child.rest() == []


def test_the_handshake_does_not_wait_for_the_rest(start: Start) -> None:
    child = start(command=TRIVIAL, FAULT="slow-loading")
    child.initialize()

    assert child.request("tools/list")["result"]["tools"] == list(TOOLS)
    assert child.request("ping")["result"] == {}


# --- configuration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (None, "config_missing"),
        ("{", "config_invalid"),
        ('{"workspaces":{},"executionProfiles":{}}', "invalid_execution_profile_config"),
    ],
)
@pytest.mark.parametrize("asks", [True, False])
def test_a_bad_configuration_ends_the_server_with_its_diagnostic(
    start: Start, tmp_path: Path, text: str | None, code: str, *, asks: bool
) -> None:
    path = tmp_path / "bad.json"
    if text is not None:
        path.write_text(text)
    child = start(PI_SESSION_MCP_CONFIG=str(path))
    if asks:
        child.initialize()
        child.start_request("tools/call", {"name": "pi_capabilities_get", "arguments": {}})
        assert child.rest() == []

    assert child.wait() == 1
    [said] = child.diagnostics
    assert (said["level"], said["event"], said["code"]) == ("error", "startup_failed", code)
    assert str(tmp_path).encode() not in child.stderr


def test_a_bad_configuration_is_said_also_when_the_input_has_ended(start: Start) -> None:
    child = start(PI_SESSION_MCP_CONFIG="relative.json")
    child.close_stdin()

    assert child.wait() == 1
    assert child.diagnostics[0]["code"] == "config_path_required"


@pytest.mark.parametrize("fault", ["crash-while-judging", "crash-while-opening"])
def test_a_defect_at_the_start_ends_the_server_without_its_text(start: Start, fault: str) -> None:
    child = start(command=TRIVIAL, FAULT=fault)
    child.initialize()
    child.start_request("tools/call", {"name": "pi_session_list", "arguments": {}})

    assert child.wait() == 1
    assert child.diagnostics == [{"level": "error", "event": "startup_failed", "code": "internal_error"}]


# --- environment ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONWARNINGS": "error", "PYTHONINSPECT": "1", "PYTHONASYNCIODEBUG": "1", "PYTHONDEVMODE": "1"},
        {
            "PYTHONIOENCODING": "ascii:strict",
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONSAFEPATH": "1",
            "PYTHONTRACEMALLOC": "25",
        },
        {
            "PYTHONOPTIMIZE": "2",
            "PYTHONPATH": f"relative{os.pathsep}",
            "OTEL_PYTHON_TRACER_PROVIDER": "sdk_tracer_provider",
            "OTEL_PROPAGATORS": "b3",
            "OTEL_SDK_DISABLED": "x",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_PYTHON_CONTEXT": "nonsense",
            "TZ": "nonsense",
            "LANG": "xx_XX",
            "TERM": "",
            "COLUMNS": "0",
        },
    ],
    ids=" ".join,
)
def test_no_variable_of_a_client_stops_the_server(start: Start, variables: dict[str, str]) -> None:
    child = start(popen=None, **variables)
    child.initialize()

    assert child.call("pi_session_list") == {"ok": True, "sessions": []}
    child.close_stdin()
    assert child.wait() == 0
    assert child.stderr == b""


def test_a_number_of_absurd_length_is_never_converted_whatever_the_variables_say(start: Start) -> None:
    child = start(PYTHONINTMAXSTRDIGITS="0")
    child.send_raw(b'{"jsonrpc":"2.0","id":' + b"7" * 4300 + b',"method":"ping"}\n')
    child.send_raw(b'{"jsonrpc":"2.0","id":' + b"7" * 4301 + b',"method":"ping"}\n')
    child.send_raw(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + b"7" * 5000 + b"}}\n")

    assert b'"result"' in child.receive_line()
    assert b"-32600" in child.receive_line()
    assert child.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}


SHADOWED = ["json", "select", "threading", "asyncio", "anyio", "mcp", "pydantic", "typing_extensions", "mcp_types"]


def shadowing(project: Path) -> Path:
    """A project whose modules have the names of ours."""
    project.mkdir()
    for name in SHADOWED:
        (project / f"{name}.py").write_text(f"raise SystemExit('{name} was taken from {project.name}')\n")
    return project


def test_modules_in_the_working_directory_or_on_pythonpath_are_not_ours(start: Start, tmp_path: Path) -> None:
    here, there = shadowing(tmp_path / "here"), shadowing(tmp_path / "there")
    packages = os.pathsep.join(entry for entry in sys.path if entry.endswith("site-packages"))
    python_path = os.pathsep.join([str(there), packages, "relative"])
    child = start(popen={"cwd": here}, PYTHONPATH=python_path)
    child.initialize()

    assert child.call("pi_session_list")["ok"] is True


@pytest.mark.parametrize("python_path", ["relative:", ":relative", "relative::relative"])
def test_an_empty_entry_of_pythonpath_is_the_working_directory_and_not_ours(
    start: Start, tmp_path: Path, python_path: str
) -> None:
    child = start(popen={"cwd": shadowing(tmp_path / "here")}, PYTHONPATH=python_path)

    assert child.initialize()["serverInfo"]["name"] == "pi-session-mcp"


def test_the_handshake_imports_the_standard_library_only_and_little_of_it(start: Start) -> None:
    script = (
        "import sys, threading\n"
        "sys.argv[1:] = ['serve']\n"
        "import pi_session_mcp.server.main\n"
        "sys.stdout.write(repr(sorted(sys.modules)).replace(\"'\", '\"') + '\\n')"
    )
    child = start(command=(sys.executable, "-c", script))
    loaded: list[Any] = child.receive()

    heavy = {
        "dataclasses",
        "inspect",
        "asyncio",
        "logging",
        "socket",
        "subprocess",
        "pathlib",
        "pydantic",
        "anyio",
        "mcp",
    }
    assert not heavy & set(loaded)
    assert "pi_session_mcp.server.wire.protocol" in loaded


@pytest.mark.parametrize(("asks", "status"), [(False, 0), (True, 77)])
def test_only_a_call_has_the_rest_loaded(start: Start, *, asks: bool, status: int) -> None:
    script = (
        "import os, sys\n"
        "sys.argv[1:] = ['serve']\n"
        "from pi_session_mcp.server import main\n"
        "def judge():\n"
        "    return main.load_configuration() if 'anyio' not in sys.modules else os._exit(78)\n"
        "def load(configuration, process):\n"
        "    os._exit(77 if 'anyio' not in sys.modules else 79)\n"
        "main.run(judge, load)\n"
    )
    child = start(command=(sys.executable, "-c", script))
    child.initialize()
    assert child.request("tools/list")["result"]["tools"] == list(TOOLS)
    if asks:
        child.start_request("tools/call", {"name": "pi_session_list", "arguments": {}})
    else:
        child.close_stdin()

    assert child.wait() == status
    assert child.diagnostics == []


def test_the_module_and_the_command_are_the_same_server(start: Start) -> None:
    command = os.path.join(os.path.dirname(sys.executable), "pi-session-mcp")
    for how in (SERVE, (command, "serve")):
        child = start(command=how)
        assert child.initialize()["serverInfo"]["name"] == "pi-session-mcp"
