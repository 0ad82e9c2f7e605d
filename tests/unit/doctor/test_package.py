"""What the installer left, beside what is there now."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from pi_session_mcp.doctor.subjects.package import look_at_package
from pi_session_mcp.doctor.subjects.system import MINIMUM_PYTHON
from tests.support.installation import METADATA, write_metadata

ROOT = Path(__file__).parents[3]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory with an installed package."""
    (tmp_path / "site" / "pi_session_mcp" / "part").mkdir(parents=True)
    (tmp_path / "site" / "pi_session_mcp" / "__init__.py").write_text("")
    (tmp_path / "site" / "pi_session_mcp" / "part" / "data.json").write_text("{}")
    write_metadata(tmp_path / "site")
    return tmp_path / "site"


def record(site: Path) -> Path:
    """The list of installed files."""
    return site / "pi_session_mcp-0.1.0.dist-info" / "RECORD"


def test_an_installation_that_nobody_touched_is_as_installed(site: Path) -> None:
    seen = look_at_package(site)

    assert (seen.metadata_readable, seen.requires, seen.modified) == (True, (3, 11), False)


def test_files_that_no_installer_wrote_are_not_compared(site: Path) -> None:
    (site / "pi_session_mcp" / "part" / "data.cpython-311.pyc").write_bytes(b"x")

    assert not look_at_package(site).modified


def recorded(site: Path, *paths: str) -> None:
    """Note these files in the record as installed with another content."""
    rows = "".join(f"{path},sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n" for path in paths)
    record(site).write_text(record(site).read_text() + rows)


@pytest.mark.parametrize(
    "path",
    [
        "../../../bin/pi-session-mcp",  # pipx writes -E into its first line, conda another prefix
        "../../Scripts/pi-session-mcp.exe",
        "../../../share/man/man1/pi-session-mcp.1",  # a distribution compresses it
        "bin/pi-session-mcp",  # pip --target
        "pi_session_mcp-0.1.0.dist-info/INSTALLER",
        "pi_session_mcp-0.1.0.dist-info/REQUESTED",
        "pi_session_mcp-0.1.0.dist-info/direct_url.json",
        "pi_session_mcp-0.1.0.dist-info/uv_cache.json",
        "pi_session_mcp/__pycache__/__init__.cpython-311.pyc",
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_installers_write_is_not_judged(site: Path, path: str, is_there: bool) -> None:  # noqa: FBT001
    if is_there:
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text("#!/usr/bin/python -E\n")
    recorded(site, path)

    seen = look_at_package(site)

    assert (seen.metadata_readable, seen.modified) == (True, False)


@pytest.mark.parametrize(
    "path",
    [
        "pi_session_mcp/__main__.py",
        "pi_session_mcp/part/data.json",
        "pi_session_mcp/../pi_session_mcp/__main__.py",
        "pi_session_mcp-0.1.0.dist-info/METADATA",
        "pi_session_mcp-0.1.0.dist-info/entry_points.txt",
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_was_released_is_judged(site: Path, path: str, is_there: bool) -> None:  # noqa: FBT001
    if is_there and not (site / path).exists():
        (site / path).write_text("changed")
    recorded(site, path)

    assert look_at_package(site).modified


@pytest.mark.parametrize("text", ["", "[]", "a,b\n", "other/__init__.py,sha256=x,1\n", '"'])
def test_a_record_that_lists_no_package_is_damaged(site: Path, text: str) -> None:
    record(site).write_text(text)

    assert not look_at_package(site).metadata_readable


def test_a_hash_of_an_unknown_kind_counts_as_a_difference(site: Path) -> None:
    record(site).write_text("pi_session_mcp/__init__.py,md5=1B2M2Y8AsgTpgAmY7PhCfg,0\n")

    assert look_at_package(site).modified


@pytest.mark.parametrize("text", ["", "Name: pi-session-mcp\n", METADATA.replace("Name", "Title"), "\0", "Name\n"])
def test_metadata_without_name_and_version_are_unreadable(site: Path, text: str) -> None:
    write_metadata(site, text)

    assert not look_at_package(site).metadata_readable


def test_an_editable_install_has_its_metadata_elsewhere_and_its_files_are_not_compared(
    site: Path, tmp_path: Path
) -> None:
    sources = tmp_path / "my sources"
    (sources / "pi_session_mcp").mkdir(parents=True)
    editable = {"url": sources.as_uri(), "dir_info": {"editable": True}}
    (record(site).parent / "direct_url.json").write_text(json.dumps(editable))
    record(site).unlink()

    seen = look_at_package(sources, search=["", str(site)])

    assert (seen.metadata_readable, seen.modified) == (True, False)


@pytest.mark.parametrize(
    "said",
    [
        {"url": "file:///elsewhere", "dir_info": {"editable": True}},
        {"url": "file:///", "dir_info": {"editable": False}},
        {"url": 1, "dir_info": {"editable": True}},
        [],
    ],
)
def test_metadata_of_another_installation_are_not_taken_for_ours(site: Path, tmp_path: Path, said: object) -> None:
    (record(site).parent / "direct_url.json").write_text(json.dumps(said))

    assert not look_at_package(tmp_path / "sources", search=[str(site)]).metadata_readable


def test_the_oldest_python_is_the_one_that_the_project_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]

    assert declared == ">={}.{}".format(*MINIMUM_PYTHON)
