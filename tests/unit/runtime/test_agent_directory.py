"""Pi's agent directory is the operator's choice, never a project's."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from pi_session_mcp.runtime.agent_directory import agent_directory, ignored_variable
from pi_session_mcp.runtime.overrides import Ignored
from tests.support.runtimes import Wishes

HOME = {"HOME": "/home/someone"}
DEFAULT = Path("/home/someone/.pi/agent")


def test_the_configured_directory_wins_wherever_it_is(tmp_path: Path) -> None:
    wishes = Wishes(pi_agent_directory=tmp_path / "agent")

    assert agent_directory(wishes, HOME | {"PI_CODING_AGENT_DIR": "/other"}, tmp_path) == tmp_path / "agent"


def test_the_variable_counts_when_it_names_a_place_outside_the_project(tmp_path: Path) -> None:
    environ = HOME | {"PI_CODING_AGENT_DIR": str(tmp_path / "agent")}

    assert agent_directory(Wishes(), environ, tmp_path / "project") == tmp_path / "agent"


@pytest.mark.parametrize("value", ["", "relative/agent", "~/agent", "~", ".", "./agent"])
def test_a_variable_that_is_not_absolute_does_not_count(tmp_path: Path, value: str) -> None:
    assert agent_directory(Wishes(), HOME | {"PI_CODING_AGENT_DIR": value}, tmp_path) == DEFAULT


def test_a_variable_that_leads_into_the_working_directory_does_not_count(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "agent").mkdir(parents=True)
    (tmp_path / "link").symlink_to(project / "agent")
    (project / "out").symlink_to(tmp_path)

    for value in (project, project / "agent", project / "absent", tmp_path / "link", project / "out"):
        assert agent_directory(Wishes(), HOME | {"PI_CODING_AGENT_DIR": str(value)}, project) == DEFAULT


def test_a_variable_that_leads_into_a_workspace_does_not_count(tmp_path: Path) -> None:
    wishes = Wishes(workspaces={"main": tmp_path / "workspace", "other": tmp_path / "other"})
    environ = HOME | {"PI_CODING_AGENT_DIR": str(tmp_path / "other" / "agent")}

    assert agent_directory(wishes, environ, tmp_path / "elsewhere") == DEFAULT


@pytest.mark.parametrize("home", [{}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/"}])
def test_without_a_usable_home_the_user_database_says_where_it_is(home: dict[str, str]) -> None:
    expected = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".pi" / "agent"

    assert agent_directory(Wishes(), home, Path("/")) == expected


@pytest.mark.parametrize("root", ["/", "//"])
def test_a_server_whose_working_directory_is_the_root_heeds_the_variable(tmp_path: Path, root: str) -> None:
    environ = HOME | {"PI_CODING_AGENT_DIR": str(tmp_path)}

    assert agent_directory(Wishes(), environ, Path(root)) == tmp_path
    assert ignored_variable(Wishes(), environ, Path(root)) is None


def test_why_a_variable_is_ignored_is_told_only_where_it_would_decide(tmp_path: Path) -> None:
    inside, relative = ({"PI_CODING_AGENT_DIR": value} for value in (str(tmp_path / "agent"), "agent"))

    assert ignored_variable(Wishes(), inside, tmp_path) is Ignored.IN_PROJECT
    assert ignored_variable(Wishes(workspaces={"main": tmp_path}), inside, Path("/")) is Ignored.IN_PROJECT
    assert ignored_variable(Wishes(), relative, tmp_path) is Ignored.NOT_ABSOLUTE
    assert ignored_variable(Wishes(), {"PI_CODING_AGENT_DIR": ""}, tmp_path) is None
    assert ignored_variable(Wishes(pi_agent_directory=tmp_path), relative, tmp_path) is None
