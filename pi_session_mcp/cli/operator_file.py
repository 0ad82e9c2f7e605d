"""Reading the operator's configuration, for all commands that need it: each refuses a bad file in the same words."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pi_session_mcp.cli.outcome import Facts, Line, Mark, Outcome
from pi_session_mcp.errors import ConfigCode, ExitStatus
from pi_session_mcp.platform.paths import working_directory

if TYPE_CHECKING:
    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.config.model import Configuration
    from pi_session_mcp.config.place import Source


@dataclass(frozen=True, slots=True)
class Read:
    """A valid configuration, and what says where it is."""

    configuration: Configuration
    source: Source


def read() -> Read | Outcome:
    """The configuration that the environment names or that is at the default place; or the outcome of its refusal."""
    from pi_session_mcp.config.errors import ConfigError
    from pi_session_mcp.config.load import load, place_for_operator

    source = None
    try:
        place = place_for_operator(os.environ, working_directory())
        source = place.source
        return Read(load(place.path), source)
    except ConfigError as refused:
        return _with_way_out(refusal(refused), refused.code, source)


def read_if_any() -> Read | Outcome | None:
    """The same for commands that need no configuration: `None` when no file is named and the default place is empty."""
    seen = read()
    is_absent = isinstance(seen, Outcome) and seen.members["code"] == ConfigCode.PATH_REQUIRED.value
    return None if is_absent else seen


def refusal(refused: ConfigError) -> Outcome:
    """The outcome for a configuration that was refused: code, place and rule, never a value."""
    report = refused.to_report()
    place = () if report.get("pointer") == "" else (("place", refused.place),)
    blocks = (Line(Mark.FAILED, "invalid", refused.code.value), Facts((*place, ("rule", refused.rule))))
    return Outcome(ExitStatus.CHECK_FAILED, report, blocks)


def _with_way_out(outcome: Outcome, code: ConfigCode, source: Source | None) -> Outcome:
    from pi_session_mcp.doctor.subjects import configuration as told_by_doctor

    remedies = {
        ConfigCode.PATH_REQUIRED: told_by_doctor.NAME_CONFIGURATION,
        ConfigCode.MISSING: told_by_doctor.WRITE_CONFIGURATION,
        ConfigCode.UNREADABLE: told_by_doctor.CONFIG_UNREADABLE.remedy,
    }
    remedy = remedies.get(code, told_by_doctor.CONFIG_INVALID.remedy)
    told = {} if source is None else source.members("source")
    shown = () if source is None else (("read from", source.words),)
    members = {**outcome.members, **told, "remediation": remedy}
    return replace(outcome, members=members, blocks=(*outcome.blocks, Facts((*shown, ("do", remedy)))))
