"""The steps of a release that are held to by a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.release import differences, digests, main, tag_faults

if TYPE_CHECKING:
    from pathlib import Path

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2030-01-31\n\n- A change.\n"
PROJECT = {"urls": {"Source": "https://example.org"}}


def test_a_tag_that_names_the_version_with_a_dated_section_can_be_published() -> None:
    assert tag_faults("v1.2.3", "1.2.3", CHANGELOG, PROJECT) == []


@pytest.mark.parametrize(
    ("tag", "changelog", "project", "fault"),
    [
        ("v1.2.4", CHANGELOG, PROJECT, "the tag is v1.2.4"),
        ("1.2.3", CHANGELOG, PROJECT, "the tag is 1.2.3"),
        ("v1.2.3", CHANGELOG.replace("1.2.3", "1.2.30"), PROJECT, "no section with a date"),
        ("v1.2.3", CHANGELOG.replace(" - 2030-01-31", ""), PROJECT, "no section with a date"),
        ("v1.2.3", CHANGELOG, {}, "[project.urls]"),
    ],
)
def test_a_release_that_is_not_ready_says_what_is_missing(
    tag: str, changelog: str, project: dict[str, object], fault: str
) -> None:
    (said,) = tag_faults(tag, "1.2.3", changelog, project)

    assert fault in said


def test_files_are_compared_by_name_and_by_bytes(tmp_path: Path) -> None:
    built, published = tmp_path / "built", tmp_path / "published"
    for directory, files in (
        (built, {"same": "1", "other": "1", "lost": "1"}),
        (published, {"same": "1", "other": "2", "more": "1"}),
    ):
        directory.mkdir()
        for name, content in files.items():
            (directory / name).write_text(content)

    assert differences(digests(built), digests(built)) == []
    assert differences(digests(built), digests(published)) == [
        "lost: is missing",
        "more: was not built",
        "other: other bytes",
    ]


def test_nothing_built_is_a_fault(tmp_path: Path) -> None:
    assert differences(digests(tmp_path), digests(tmp_path)) == ["nothing was built"]


def test_a_step_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upload"]) == 1
    assert "release.py check TAG" in capsys.readouterr().out
