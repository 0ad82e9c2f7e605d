"""The first configuration's text, and that it is never put over anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.config.initial import Initial, alias_for, create, text_of
from pi_session_mcp.config.load import interpret
from pi_session_mcp.terms.selection import Selection

if TYPE_CHECKING:
    from pathlib import Path


def test_the_text_is_valid_whatever_the_paths_are_made_of(tmp_path: Path) -> None:
    odd = tmp_path / 'a "b" \\ ü'
    initial = Initial({"w": odd}, Selection("p", "m", "off"), coding=True, pi_agent_directory=odd)

    read = interpret(text_of(initial), tmp_path)

    assert read.workspaces == {"w": odd}
    assert read.pi_agent_directory == odd
    assert list(read.execution_profiles) == ["read-only", "coding"]


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("app", "app"),
        ("My App 2", "my-app-2"),
        ("2nd", "nd"),
        ("_x_", "x"),
        ("Ünïcode", "n-code"),
        ("日本", "workspace"),
        ("a" * 80, "a" * 64),
    ],
)
def test_a_directory_suggests_an_alias(name: str, alias: str) -> None:
    assert alias_for(name) == alias


def test_a_file_that_is_there_stays_as_it_is_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    create(path, b"first")

    with pytest.raises(FileExistsError):
        create(path, b"second")

    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
