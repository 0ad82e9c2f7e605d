"""What a host sees of the environment of its client."""

from __future__ import annotations

from pathlib import Path

from pi_session_mcp.host.host_environment import host_environment

AGENT = Path("/home/someone/.pi/agent")


def test_what_changes_how_node_runs_is_left_out_but_for_certificates() -> None:
    seen = host_environment(
        {"NODE_OPTIONS": "--inspect", "NODE_PATH": "/evil", "NODE_EXTRA_CA_CERTS": "/ca", "EDITOR": "vi"},
        agent_directory=AGENT,
        tools=None,
    )
    assert not {"NODE_OPTIONS", "NODE_PATH"} & seen.keys()
    assert (seen["NODE_EXTRA_CA_CERTS"], seen["EDITOR"]) == ("/ca", "vi")


def test_of_the_options_of_node_only_those_about_certificates_are_kept() -> None:
    given = {"NODE_OPTIONS": " --use-openssl-ca --require=/evil.js --use-system-ca\t--inspect", "SSL_CERT_FILE": "/ca"}
    seen = host_environment(given, agent_directory=AGENT, tools=None)
    assert (seen["NODE_OPTIONS"], seen["SSL_CERT_FILE"]) == ("--use-openssl-ca --use-system-ca", "/ca")


def test_proxy_variables_are_kept_and_nothing_makes_node_read_them_itself() -> None:
    given = {"HTTPS_PROXY": "http://proxy:1", "no_proxy": "localhost", "NODE_USE_ENV_PROXY": "1"}
    seen = host_environment(given, agent_directory=AGENT, tools=None)
    assert (seen["HTTPS_PROXY"], seen["no_proxy"]) == ("http://proxy:1", "localhost")
    assert "NODE_USE_ENV_PROXY" not in seen


def test_what_moves_the_sdk_or_steers_ripgrep_is_left_out() -> None:
    given = {"PI_PACKAGE_DIR": "/evil", "RIPGREP_CONFIG_PATH": "/evil", "PI_SESSION_MCP_CONFIG": "/canary"}
    assert not given.keys() & host_environment(given, agent_directory=AGENT, tools=None).keys()


def test_the_hosts_own_settings_win_over_the_clients() -> None:
    seen = host_environment(
        {"PI_CODING_AGENT_DIR": "/evil", "PI_OFFLINE": "0", "PI_TELEMETRY": "1"}, agent_directory=AGENT, tools=None
    )
    assert seen["PI_CODING_AGENT_DIR"] == str(AGENT)
    assert (seen["PI_OFFLINE"], seen["PI_TELEMETRY"], seen["NO_COLOR"]) == ("1", "0", "1")


def test_the_tools_come_first_on_the_path_and_relative_entries_are_dropped() -> None:
    seen = host_environment({"PATH": ".:/usr/bin::bin:/bin"}, agent_directory=AGENT, tools=Path("/our/tools"))
    assert seen["PATH"] == "/our/tools:/usr/bin:/bin"


def test_a_missing_path_is_no_error() -> None:
    assert host_environment({}, agent_directory=AGENT, tools=Path("/our/tools"))["PATH"] == "/our/tools"


def test_without_our_tools_no_program_of_a_project_can_be_taken_for_them() -> None:
    given = {"PATH": "/project/bin:/usr/bin"}

    def is_project(directory: str) -> bool:
        return directory.startswith("/project")

    alone = host_environment(given, agent_directory=AGENT, tools=None, is_project=is_project)
    behind = host_environment(given, agent_directory=AGENT, tools=Path("/our/tools"), is_project=is_project)
    assert alone["PATH"] == "/usr/bin"
    assert behind["PATH"] == "/our/tools:/project/bin:/usr/bin"
