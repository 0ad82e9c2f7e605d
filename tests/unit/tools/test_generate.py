"""What is made from the program is what the program says, in the checkout, and one command finds and mends the rest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tools.generate import ROOT, generated, main
from tools.generated import Generated

WHOLE: Final = Generated(Path("made/whole.txt"), "whole\n")
PART: Final = Generated(Path("part.md"), "made\n", ("<!-- begin -->\n", "<!-- end -->\n"))
BY_HAND: Final = "# By hand\n\n{}\nBy hand too.\n"
GOOD: Final = BY_HAND.format("<!-- begin -->\n\nmade\n<!-- end -->\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout in which nothing differs."""
    (tmp_path / WHOLE.path.parent).mkdir()
    (tmp_path / WHOLE.path).write_text(WHOLE.text)
    (tmp_path / PART.path).write_text(GOOD)
    return tmp_path


@pytest.fixture(scope="module")
def made() -> tuple[Generated, ...]:
    """Everything that is made from the program."""
    return tuple(generated())


def test_each_file_in_the_checkout_is_what_the_program_says(made: tuple[Generated, ...]) -> None:
    committed = {file.path: (ROOT / file.path).read_text(encoding="utf-8") for file in made}

    differing = [file.path for file in made if file.within(committed[file.path]) != committed[file.path]]
    assert differing == [], "run: make generate"
    assert all(committed[file.path].count(mark) == 1 for file in made for mark in file.marks or ())


def test_no_file_is_made_twice(made: tuple[Generated, ...]) -> None:
    assert len({file.path for file in made}) == len(made)


def test_the_terminal_that_it_is_made_on_changes_nothing(
    made: tuple[Generated, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "47")
    assert tuple(generated()) == made
    assert os.environ["COLUMNS"] == "47"

    monkeypatch.delenv("COLUMNS")
    assert tuple(generated()) == made
    assert "COLUMNS" not in os.environ


def test_nothing_is_said_or_written_where_nothing_differs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place in (root / WHOLE.path, root / PART.path):
        os.utime(place, (0, 0))

    assert main(["--check"], root, [WHOLE, PART]) == main([], root, [WHOLE, PART]) == 0

    assert capsys.readouterr().out == ""
    assert [(root / file.path).stat().st_mtime for file in (WHOLE, PART)] == [0, 0]


@pytest.mark.parametrize("found", ["something else\n", "", None])
def test_a_file_that_differs_or_is_missing_is_named_and_writing_mends_it(
    found: str | None, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = root / WHOLE.path
    place.unlink()
    if found is None:
        place.parent.rmdir()
    else:
        place.write_text(found)

    assert main(["--check"], root, [WHOLE, PART]) == 1
    assert capsys.readouterr().out == f"{WHOLE.path} differs from the program; run: make generate\n"
    assert place.exists() is (found is not None)

    assert main([], root, [WHOLE, PART]) == 0
    assert place.read_text() == WHOLE.text


def test_every_file_that_differs_has_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], tmp_path, [WHOLE, PART]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [str(WHOLE.path), str(PART.path)]
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_by_hand_around_the_marks_is_kept(root: Path) -> None:
    (root / PART.path).write_text(GOOD.replace("made", "of yesterday"))

    assert main(["--check"], root, [PART]) == 1
    assert main([], root, [PART]) == 0
    assert (root / PART.path).read_text() == GOOD


def test_a_mistyped_option_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--chek"], tmp_path, [WHOLE])

    assert refused.value.code == 2
    assert list(tmp_path.iterdir()) == []
