"""Checks that the example configuration is valid for the program and for the shipped JSON Schema alike."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import jsonschema

from pi_session_mcp.config.errors import ConfigError
from pi_session_mcp.config.load import load
from pi_session_mcp.config.schema import load_text

EXAMPLE: Final = Path("config.example.json")


def main() -> int:
    """Print each fault; 1 if there is one."""
    faults = example_faults(EXAMPLE.absolute())
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def example_faults(path: Path) -> list[str]:
    """What is wrong with the example, for the program and for the schema."""
    faults = []
    try:
        load(path)
    except ConfigError as refused:
        faults.append(f"{path.name}: {refused}")
    schema = json.loads(load_text())
    errors = jsonschema.Draft202012Validator(schema).iter_errors(json.loads(path.read_bytes()))
    return [*faults, *(f"{path.name} against the schema: {error.json_path}" for error in errors)]


if __name__ == "__main__":
    sys.exit(main())
