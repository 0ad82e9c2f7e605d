"""What is reported of the pins of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pi_session_mcp.config.model import Configuration, ExecutionProfile, RuntimeOverride
from pi_session_mcp.extensions.check import check
from pi_session_mcp.extensions.outcomes import VERDICTS, Condition
from pi_session_mcp.terms.pin import parse
from tests.support.extensions import install_package

if TYPE_CHECKING:
    from pathlib import Path

COMMON: dict[str, Any] = {"provider": "p", "model": "m", "thinking_level": "off"}


def configuration(workspace: Path, **pins: tuple[str, ...]) -> Configuration:
    profiles = {
        alias: ExecutionProfile(permission_profile="coding", extensions=tuple(map(parse, extensions)), **COMMON)
        for alias, extensions in pins.items()
    }
    return Configuration(
        workspaces={"w": workspace},
        execution_profiles=profiles,
        max_sessions=1,
        pi_agent_directory=None,
        runtime=RuntimeOverride(),
        fingerprint="",
    )


def test_each_pin_of_each_profile_has_one_finding_sorted_by_profile_and_package(tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    install_package(agent, "b")
    install_package(agent, "@a/a", "2.0.0")
    install_package(agent, "broken", entries=["./gone.ts"])

    findings = check(
        configuration(
            tmp_path / "w",
            z=("npm:missing@1.0.0", "npm:b@1.0.0"),
            a=("npm:broken@1.0.0", "npm:b@1.0.0", "npm:@a/a@1.0.0"),
        ),
        agent,
    )

    assert [(one.profile, str(one.pin), one.status) for one in findings] == [
        ("a", "@a/a@1.0.0", "extension_version_mismatch"),
        ("a", "b@1.0.0", "ok"),
        ("a", "broken@1.0.0", "extension_load_failed"),
        ("z", "b@1.0.0", "ok"),
        ("z", "missing@1.0.0", "extension_not_installed"),
    ]
    assert [one.remediation is None for one in findings] == [False, True, False, True, False]
    assert {one.remediation for one in findings} <= {None, *(verdict.remediation for verdict in VERDICTS.values())}


def test_without_pins_there_is_nothing_to_report(tmp_path: Path) -> None:
    assert check(configuration(tmp_path, plain=()), tmp_path) == ()


def test_a_package_inside_a_workspace_is_reported_as_the_server_would_refuse_it(tmp_path: Path) -> None:
    install_package(tmp_path / "w" / "agent", "b")

    (finding,) = check(configuration(tmp_path / "w", only=("npm:b@1.0.0",)), tmp_path / "w" / "agent")

    assert (finding.status, finding.condition) == ("extension_load_failed", Condition.IN_WORKSPACE)


def test_a_missing_dependency_is_said_and_refuses_nothing(tmp_path: Path) -> None:
    install_package(tmp_path / "agent", "b", dependencies={"gone": "1"})

    (finding,) = check(configuration(tmp_path / "w", only=("npm:b@1.0.0",)), tmp_path / "agent")

    assert (finding.status, finding.condition) == ("ok", Condition.DEPENDENCY_MISSING)
    assert finding.remediation == VERDICTS[Condition.DEPENDENCY_MISSING].remediation
