"""The checks in docs/doctor.md and the schema docs/doctor.schema.json, made from the doctor's table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.cli.outcome import SCHEMA_VERSION
from pi_session_mcp.config.place import Source
from pi_session_mcp.doctor.checks import TABLE
from pi_session_mcp.doctor.subject import ALIAS, PIN, PROFILE, TARGET, UNCHECKED, VARIABLE, Row, Severity
from pi_session_mcp.doctor.subjects.agent_directory import PI_CONFIGURATION_INVALID
from pi_session_mcp.doctor.subjects.configuration import CONFIG_INVALID
from pi_session_mcp.doctor.subjects.network import ALL_VARIABLES, NAMES
from pi_session_mcp.doctor.subjects.profiles import NOTES
from pi_session_mcp.doctor.subjects.setup_state import STATE_DIRECTORY_UNSUPPORTED
from pi_session_mcp.host.protocol import PiFault
from tools.generated import Generated

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: Final = Path("docs/doctor.md")
SCHEMA: Final = Path("docs/doctor.schema.json")
BEGIN: Final = "<!-- The checks below are written by tools/generate.py. -->\n"
END: Final = "<!-- End of the checks. -->\n"
_ALIAS: Final = "[a-z][a-z0-9_-]{0,63}"
_TARGET: Final = "[a-z-]+:[a-z]+"
_PACKAGE: Final = "(@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*"


def files() -> Iterator[Generated]:
    """The document with one section for each check, and the schema."""
    yield Generated(DOCUMENT, "".join(section(row) for row in TABLE), (BEGIN, END))
    yield Generated(SCHEMA, json.dumps(schema(), indent=2) + "\n")


def section(row: Row) -> str:
    """One check: what it is about, what it means, and what to do."""
    remedies = "".join(f"- {code_spans(remedy)}\n" for remedy in row.remedies)
    head = f"### `{row.id}`\n\n{row.severity.value.capitalize()}; subject: {code_spans_of_subject(row)}.\n\n"
    return f"{head}{row.meaning}\n\nTo mend it:\n\n{remedies}\n"


def code_spans(sentence: str) -> str:
    """The sentence as Markdown; what stands in angle brackets would vanish as a tag."""
    return sentence.replace("pi install npm:<name>@<version>", "`pi install npm:<name>@<version>`")


def code_spans_of_subject(row: Row) -> str:
    """A fixed name as it is, a pattern as code."""
    return f"`{row.subject}`" if row.subject == PIN else row.subject


def schema() -> dict[str, Any]:
    """The JSON Schema of what `doctor --json` prints, whatever happens."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The report of pi-session-mcp doctor --json",
        "oneOf": [{"$ref": "#/$defs/report"}, {"$ref": "#/$defs/noReport"}],
        "$defs": {
            "report": _report(),
            "noReport": _no_report(),
            "check": {"oneOf": [branch for row in TABLE for branch in _branches(row)]},
        },
    }


def _report() -> dict[str, Any]:
    properties = {
        "schemaVersion": {"const": SCHEMA_VERSION},
        "ok": {"type": "boolean", "description": "Whether exitCode is 0."},
        "exitCode": {"enum": [0, 1, 2], "description": "0 all is well, 1 warnings only, 2 an error."},
        "packageVersion": {"type": "string"},
        "configurationSource": {
            "const": Source.DEFAULT_PLACE.value,
            "description": "The configuration is at the default place; left out where a variable or nothing names one.",
        },
        "checks": {
            "type": "array",
            "items": {"$ref": "#/$defs/check"},
            "description": "In the order of the table, then by subject. A finding that leaves nothing to say about "
            "what comes after it in its line is followed by no check of that line.",
        },
    }
    return _closed(properties, optional=("configurationSource",))


def _no_report() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "schemaVersion": {"const": SCHEMA_VERSION},
        "ok": {"const": False},
        "exitCode": {"enum": [1, 64, 130, 143]},
        "code": {"enum": ["usage", "interrupted", "terminated", "output_lost", "internal_error"]},
        "message": {"type": "string"},
        "valid": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    }
    return _closed(properties, optional=("message", "valid"))


def _branches(row: Row) -> list[dict[str, Any]]:
    common = {"id": {"const": row.id}, "subject": _subject(row)}
    remedies = [*row.remedies, UNCHECKED]
    found: dict[str, Any] = {
        **common,
        "severity": {"const": row.severity.value},
        "remediation": {"enum": remedies},
    }
    places: dict[str, Any] = {
        "pointer": {"type": "string", "description": "RFC 6901; made of the operator's own keys."},
        "line": {"type": "integer", "minimum": 1},
        "column": {"type": "integer", "minimum": 1},
        "rule": {"type": "string"},
    }
    with_places = {**found, **places} if row is CONFIG_INVALID else found
    optional = ("pointer", "line", "column") if row is CONFIG_INVALID else ()
    fine: dict[str, Any] = {**common, "severity": {"const": Severity.OK.value}}
    if row.subject == PROFILE:
        fine["note"] = {"enum": list(NOTES.values()), "description": "What was not looked at, and why."}
    return [_closed(fine, optional=("note",)), _closed(with_places, optional=optional)]


def _subject(row: Row) -> dict[str, Any]:
    match row.subject:
        case s if s in {ALIAS, PROFILE}:
            return {"type": "string", "pattern": f"^{_ALIAS}$"}
        case s if s == PIN:
            return {"type": "string", "pattern": f"^{_ALIAS}:{_PACKAGE}$"}
        case s if s == VARIABLE:
            return {"enum": [ALL_VARIABLES, *NAMES]}
        case s if s == TARGET:
            return {"type": "string", "pattern": f"^({STATE_DIRECTORY_UNSUPPORTED.subject}|{_TARGET})$"}
        case fixed if row is PI_CONFIGURATION_INVALID:
            return {"enum": [fixed, *dict.fromkeys(fault.file for fault in PiFault)]}
        case fixed:
            return {"const": fixed}


def _closed(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
