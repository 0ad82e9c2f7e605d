"""Where the operator's commands look for the configuration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_session_mcp.config.place import Place, Source, default_place, place_to_read


def _written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_the_default_place_is_below_the_home_directory(tmp_path: Path) -> None:
    assert default_place({"HOME": str(tmp_path)}) == tmp_path / ".config" / "pi-session-mcp" / "config.json"


def test_an_absolute_base_for_configurations_counts(tmp_path: Path) -> None:
    environ = {"HOME": "/home/somebody", "XDG_CONFIG_HOME": str(tmp_path)}

    assert default_place(environ) == tmp_path / "pi-session-mcp" / "config.json"


@pytest.mark.parametrize("base", ["", "relative", "./x", "~/x", "/with\0nul"])
def test_another_base_counts_for_nothing(tmp_path: Path, base: str) -> None:
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": base}

    assert default_place(environ) == default_place({"HOME": str(tmp_path)})


def test_a_named_file_is_meant_whether_it_is_there_or_not(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    usual = default_place(environ)
    assert usual is not None
    _written(usual)

    assert place_to_read("absent.json", environ, tmp_path) == Place(tmp_path / "absent.json", Source.VARIABLE)
    assert place_to_read("/etc/absent.json", environ, tmp_path) == Place(Path("/etc/absent.json"), Source.VARIABLE)


@pytest.mark.parametrize("there", ["file", "directory", "dangling link"])
def test_without_a_name_the_default_place_is_read_if_anything_is_there(tmp_path: Path, there: str) -> None:
    environ = {"HOME": str(tmp_path)}
    usual = default_place(environ)
    assert usual is not None
    before = place_to_read("", environ, tmp_path)
    usual.parent.mkdir(parents=True)
    if there == "file":
        usual.write_text("{}")
    elif there == "directory":
        usual.mkdir()
    else:
        usual.symlink_to("nowhere")

    assert before is None
    assert place_to_read("", environ, tmp_path) == Place(usual, Source.DEFAULT_PLACE)


def test_a_file_in_the_way_of_the_default_place_is_no_configuration(tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("")

    assert place_to_read("", {"HOME": str(tmp_path)}, tmp_path) is None


@pytest.mark.skipif(os.getuid() == 0, reason="permissions do not hold the superuser back")
def test_a_closed_directory_is_no_absent_configuration(tmp_path: Path) -> None:
    usual = _written(tmp_path / ".config" / "pi-session-mcp" / "config.json")
    usual.parent.chmod(0)
    try:
        seen = place_to_read("", {"HOME": str(tmp_path)}, tmp_path)
    finally:
        usual.parent.chmod(0o700)

    assert seen == Place(usual, Source.DEFAULT_PLACE)
