"""Keeps completions/ equal to the program: writes the scripts, or with `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pi_session_mcp.cli.completion import SCRIPTS
from pi_session_mcp.cli.grammar import read
from pi_session_mcp.cli.program import build

DIRECTORY: Final = Path("completions")


def main(arguments: list[str]) -> int:
    """Write the scripts, or compare them when asked to check; 1 if one differs."""
    wanted = scripts()
    if "--check" not in arguments:
        DIRECTORY.mkdir(exist_ok=True)
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
        return 0
    different = [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in different:
        print(f"{path} differs from the program; run: python tools/completions.py")
    return int(bool(different))


def scripts() -> dict[Path, str]:
    """Each script by its place in a checkout."""
    root = read(build())
    return {DIRECTORY / name: write(root) for name, write in SCRIPTS.values()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
