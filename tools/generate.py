"""Keeps the files made from the program equal to it: writes those that differ, or with `--check` only names them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools import (
    command_reference,
    completions,
    configuration_schema,
    doctor_reference,
    help_pages,
    layers_reference,
    limits_reference,
    man_page,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tools.generated import Generated

ROOT: Final = Path(__file__).parents[1]
_SOURCES: Final = (
    command_reference,
    completions,
    configuration_schema,
    doctor_reference,
    help_pages,
    layers_reference,
    limits_reference,
    man_page,
)


def main(arguments: list[str], root: Path, files: Iterable[Generated]) -> int:
    """Write those of `files` that differ below `root`; asked to check, only name them, and 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file differs")
    check: bool = parser.parse_args(arguments).check
    differing = dict(_differing(root, files))
    for path, text in differing.items():
        if check:
            print(f"{path} differs from the program; run: make generate")
        else:
            _write(root / path, text)
    return int(check and bool(differing))


def generated() -> Iterator[Generated]:
    """Every file of the checkout that is made from the program."""
    for source in _SOURCES:
        yield from source.files()


def _differing(root: Path, files: Iterable[Generated]) -> Iterator[tuple[Path, str]]:
    for file in files:
        place = root / file.path
        before = place.read_text(encoding="utf-8") if place.is_file() else None
        after = file.within(before or "")
        if before != after:
            yield file.path, after


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], ROOT, generated()))
