"""What Node has compiled does not pile up, and removing it harms nobody who runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pi_session_mcp.runtime.compile_cache import BETWEEN_S, KEPT_S, MAX_CACHE_BYTES, prune

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0


def entry(path: Path, *, age_s: float = 0.0, size: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    os.utime(path, (NOW - age_s, NOW - age_s))
    return path


@pytest.fixture
def caches(tmp_path: Path) -> Path:
    return tmp_path / "compile-cache"


def left(caches: Path) -> set[str]:
    return {path.name for path in caches.rglob("*") if path.is_file()} - {".pruned"}


def test_an_entry_is_kept_for_its_time_and_no_longer(caches: Path) -> None:
    entry(caches / "1.6.0-v24.19.0" / "v24" / "kept", age_s=KEPT_S)
    entry(caches / "1.6.0-v24.19.0" / "v24" / "old", age_s=KEPT_S + 1)
    entry(caches / "1.5.2-v22.19.0" / "v22" / "of-another-version", age_s=KEPT_S + 1)

    prune(caches, now=NOW)

    assert left(caches) == {"kept"}
    assert not (caches / "1.5.2-v22.19.0").exists()


@pytest.mark.parametrize(("size", "names"), [(1, {"new", "older"}), (2, {"new"})])
def test_the_oldest_of_what_is_too_much_goes(caches: Path, size: int, names: set[str]) -> None:
    entry(caches / "a" / "v" / "new", size=MAX_CACHE_BYTES - 1)
    entry(caches / "b" / "v" / "older", age_s=1, size=size)

    prune(caches, now=NOW)

    assert left(caches) == names


@pytest.mark.parametrize(("later_s", "names"), [(BETWEEN_S - 1, {"old"}), (BETWEEN_S, set())])
def test_a_pass_is_made_once_a_day_by_whichever_server_comes_first(
    caches: Path, later_s: float, names: set[str]
) -> None:
    entry(caches / "a" / "v" / "new")
    prune(caches, now=NOW)
    (caches / "a" / "v" / "new").unlink()
    entry(caches / "a" / "v" / "old", age_s=KEPT_S + 1)

    prune(caches, now=NOW + later_s)

    assert left(caches) == names


def test_a_clock_that_was_ahead_does_not_put_it_off_for_ever(caches: Path) -> None:
    entry(caches / "a" / "v" / "old", age_s=KEPT_S + 1)
    entry(caches / ".pruned", age_s=-1000)

    prune(caches, now=NOW)

    assert left(caches) == set()


def test_what_links_lead_to_is_not_touched(caches: Path, tmp_path: Path) -> None:
    outside = entry(tmp_path / "outside" / "file", age_s=KEPT_S + 1)
    caches.mkdir()
    (caches / "directory").symlink_to(outside.parent)
    (caches / "file").symlink_to(outside)

    prune(caches, now=NOW)

    assert outside.exists()


def test_a_stamp_that_leads_elsewhere_is_not_followed(caches: Path, tmp_path: Path) -> None:
    outside = entry(tmp_path / "outside", age_s=BETWEEN_S)
    caches.mkdir()
    (caches / ".pruned").symlink_to(outside)
    os.utime(caches / ".pruned", (NOW - BETWEEN_S, NOW - BETWEEN_S), follow_symlinks=False)

    prune(caches, now=NOW)

    assert outside.stat().st_mtime == NOW - BETWEEN_S


@pytest.mark.parametrize("what", ["nothing", "a file"])
def test_where_there_is_no_cache_nothing_happens(caches: Path, what: str) -> None:
    if what == "a file":
        caches.write_text("")

    prune(caches, now=NOW)

    assert caches.exists() == (what == "a file")
