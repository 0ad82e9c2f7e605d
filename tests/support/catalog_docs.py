"""The parts of `docs/tools.md` that are made from the catalog.

`python -m tests.support.catalog_docs` writes them anew; a test keeps them equal.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from pi_session_mcp.server.catalog import TOOLS, UUID_PATTERN

PAGE: Final = Path(__file__).parents[2] / "docs" / "tools.md"
_MADE: Final = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_HINTS: Final = {"readOnlyHint": "reads only", "destructiveHint": "destructive", "idempotentHint": "idempotent"} | {
    "openWorldHint": "open world"
}


def with_made_parts(page: str) -> str:
    """The page with every part between its marks made anew."""
    return _MADE.sub(lambda found: f"{found[1]}{_part(found[2])}\n{found[3]}", page)


def parts_of(page: str) -> list[str]:
    """The names of the made parts, in order."""
    return [name for _, name, _ in _MADE.findall(page)]


def _part(name: str) -> str:
    if name == "overview":
        return _overview()
    return _reference(next(tool for tool in TOOLS if tool["name"] == name))


def _overview() -> str:
    rows = [f"| Tool | Title | {' | '.join(_HINTS.values())} |", "| --- " * (2 + len(_HINTS)) + "|"]
    for tool in TOOLS:
        hints = ["yes" if tool["annotations"][hint] else "no" for hint in _HINTS]
        rows.append(f"| [`{tool['name']}`](#{tool['name']}) | {tool['title']} | {' | '.join(hints)} |")
    return "\n".join(rows)


def _reference(tool: dict[str, Any]) -> str:
    schema = tool["inputSchema"]
    said = f"> {tool['description']}\n"
    if not schema["properties"]:
        return f"{said}\nInput: none."
    rows = ["| Input | Required | Rule |", "| --- | --- | --- |"]
    for name, field in schema["properties"].items():
        required = "yes" if name in schema.get("required", []) else "no"
        rows.append(f"| `{name}` | {required} | {_rule(field)} |")
    return "\n".join([said, *rows])


def _rule(field: dict[str, Any]) -> str:
    if field.get("pattern") == UUID_PATTERN:
        return "UUID, 36 characters, lower case"
    if field["type"] == "integer":
        return f"integer, {field['minimum']} to {field['maximum']:,}, default {field['default']}"
    if "maxLength" in field:
        return f"text, {field['minLength']} to {field['maxLength']:,} characters"
    return "text"


if __name__ == "__main__":
    PAGE.write_text(with_made_parts(PAGE.read_text("utf-8")), "utf-8")
