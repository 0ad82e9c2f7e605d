"""What a module's docstring promises is held by the import contracts."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def modules_that_call_themselves_pure() -> set[str]:
    """Names of the modules whose docstring has the word “Pure”."""
    found = set()
    for path in (ROOT / "pi_session_mcp").rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if re.search(r"\bPure\b", docstring):
            found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


def test_every_module_that_calls_itself_pure_is_held_to_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (pure,) = (contract for contract in contracts if contract["name"] == "Pure modules do no I/O")

    assert modules_that_call_themselves_pure() - set(pure["source_modules"]) == set()
