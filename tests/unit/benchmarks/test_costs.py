"""The tables of what each process costs."""

from __future__ import annotations

from benchmarks.costs import Costs, as_text
from benchmarks.growth import Memory


def cells(text: str) -> list[list[str]]:
    """The cells of every line of the tables, without their rules."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_each_process_has_a_column_and_shows_the_mean_of_what_it_took() -> None:
    ours, theirs = Costs("ours"), Costs("theirs")
    ours.note_cpu("a turn", {"server": 10.0}, {"server": 50.0, "host": 100.0}, 10)
    theirs.note_cpu("a turn", {"server": 0.0}, {"server": 90.0}, 10)
    ours.note_memory("idle", {"server": Memory(20, 40)})

    assert cells(as_text([ours, theirs])) == [
        ["CPU for one, ms", "ours", "its host", "theirs"],
        ["a turn", "4.00", "10.0", "9.00"],
        ["Memory, MiB: RSS (PSS)", "ours"],
        ["idle", "40.0 (20.0)"],
    ]


def test_a_step_that_a_server_did_not_reach_is_shown_as_such() -> None:
    ours, theirs = Costs("ours"), Costs("theirs")
    ours.note_memory("idle", {"server": Memory(20, 40)})
    theirs.note_memory("idle", {"server": Memory(1, 2)})
    ours.note_memory("1 session", {"server": Memory(30, 60)})

    assert cells(as_text([ours, theirs]))[-1] == ["1 session", "60.0 (30.0)", "–"]  # noqa: RUF001 - the sign is meant
