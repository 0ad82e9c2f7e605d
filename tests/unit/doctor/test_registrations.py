"""What a registered client keeps from the server, by setup's records and by the client's own file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.doctor.subjects.network import NAMES, kept_back, kept_back_variables
from pi_session_mcp.doctor.subjects.setup_state import registered_clients

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {"HTTPS_PROXY": "http://127.0.0.1:9", "no_proxy": "localhost", "NODE_OPTIONS": "--use-openssl-ca --inspect"}


def record(state: Path, *targets: str, phase: str = "owned") -> None:
    state.mkdir(mode=0o700, exist_ok=True)
    rest = {"registration": "0" * 64, "release": "0" * 64, "previous": None, "transactionId": "0" * 32}
    records = [
        {"target": f"{target}:pi-session-mcp", "place": f"{place:064}", "phase": phase, **rest}
        for place, target in enumerate(targets)
    ]
    (state / "ownership.json").write_text(json.dumps({"schemaVersion": 1, "records": records}))
    (state / "ownership.json").chmod(0o600)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "setup"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {**ENVIRON, "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "codex")}


def test_without_a_registration_nothing_is_kept_back(state: Path, environ: dict[str, str]) -> None:
    assert kept_back_variables(registered_clients(state), environ) == ()
    record(state, "codex:user", phase="pending")
    assert kept_back_variables(registered_clients(state), environ) == ()


def test_claude_code_passes_everything_on_and_codex_little(state: Path, environ: dict[str, str]) -> None:
    record(state, "claude-code:user", "claude-code:project")
    assert kept_back_variables(registered_clients(state), environ) == ()

    record(state, "claude-code:user", "codex:user")
    assert registered_clients(state) == {"claude-code", "codex"}
    assert set(kept_back_variables(registered_clients(state), environ) or ()) == {
        "HTTPS_PROXY",
        "no_proxy",
        "NODE_OPTIONS",
    }


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ('[mcp_servers.pi-session-mcp]\nenv_vars = ["HTTPS_PROXY", "NODE_OPTIONS"]\n', {"no_proxy"}),
        ('[mcp_servers.pi-session-mcp.env]\nno_proxy = "localhost"\n', {"HTTPS_PROXY", "NODE_OPTIONS"}),
        ('[mcp_servers.other]\nenv_vars = ["HTTPS_PROXY"]\n', {"HTTPS_PROXY", "no_proxy", "NODE_OPTIONS"}),
        ("mcp_servers = 1\n", {"HTTPS_PROXY", "no_proxy", "NODE_OPTIONS"}),
        ("[mcp_servers.pi-session-mcp]\nenv_vars = 1\n", {"HTTPS_PROXY", "no_proxy", "NODE_OPTIONS"}),
        ("[mcp_servers.pi-session-mcp]\nenv_vars = [[1], {}]\n", {"HTTPS_PROXY", "no_proxy", "NODE_OPTIONS"}),
        ("no TOML", {"HTTPS_PROXY", "no_proxy", "NODE_OPTIONS"}),
    ],
)
def test_what_codexs_own_entry_names_reaches_the_server(
    state: Path, environ: dict[str, str], tmp_path: Path, text: str, lost: set[str]
) -> None:
    record(state, "codex:user")
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "config.toml").write_text(text)

    assert set(kept_back_variables(registered_clients(state), environ) or ()) == lost


def test_a_variable_counts_when_it_says_something() -> None:
    assert list(kept_back(dict.fromkeys(NAMES, ""), frozenset())) == []
    assert list(kept_back({"NODE_OPTIONS": "--inspect"}, frozenset())) == []
    assert len(NAMES) == len(set(NAMES)) == 10
    assert set(kept_back({**dict.fromkeys(NAMES, "x"), "NODE_OPTIONS": "--use-system-ca"}, frozenset())) == set(NAMES)
