"""All subjects of the doctor, in the order of the table, and one examination of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pi_session_mcp.doctor.report import Report
from pi_session_mcp.doctor.subject import Check, Subject, Unseen, survive
from pi_session_mcp.doctor.subjects import (
    agent_directory,
    configuration,
    extensions,
    network,
    node,
    package,
    profiles,
    runtime,
    setup_state,
    system,
    workspaces,
)

if TYPE_CHECKING:
    from pi_session_mcp.doctor.installation import Installation

SUBJECTS: Final[tuple[Subject[Any], ...]] = (
    system.SYSTEM,
    package.SUBJECT,
    node.SUBJECT,
    runtime.SDK,
    agent_directory.VARIABLE,
    agent_directory.FILES,
    agent_directory.LOCK,
    network.SUBJECT,
    configuration.SUBJECT,
    workspaces.SUBJECT,
    profiles.SUBJECT,
    runtime.SEARCH_TOOLS,
    system.TEMPORARY_DIRECTORY,
    setup_state.SUBJECT,
    extensions.SUBJECT,
)
TABLE: Final = tuple(row for subject in SUBJECTS for row in subject.rows)
Seen: TypeAlias = Mapping[Subject[Any], object]
"""The facts of each subject."""
_ORDER: Final = {row.id: place for place, row in enumerate(TABLE)}


def examine(here: Installation) -> Report:
    """Look once, and report. Writes nothing, opens no socket, and runs nothing but Node. Never raises."""
    seen = {subject: survive(partial(subject.look, here), Unseen()) for subject in SUBJECTS}
    source = here.place.source if here.place else None
    return Report(decide(seen), configuration_from=source, is_registered=here.registered_clients != frozenset())


def decide(seen: Seen) -> tuple[Check, ...]:
    """Every check that these facts allow, in the table's order and then by subject. Pure."""
    made = (check for subject, facts in seen.items() for check in subject.judge(facts))
    return tuple(sorted(made, key=lambda check: (_ORDER[check.row.id], check.subject)))
