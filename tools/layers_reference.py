"""The order of the folders in docs/architecture.md, as the import contract in pyproject.toml has it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.generated import Generated

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: Final = Path("docs/architecture.md")
BEGIN: Final = "<!-- The order below is written by tools/generate.py. -->\n"
END: Final = "<!-- End of the order. -->\n"
_PROJECT: Final = Path(__file__).parents[1] / "pyproject.toml"


def files() -> Iterator[Generated]:
    """The document with the layers, the topmost first."""
    yield Generated(DOCUMENT, f"```\n{' → '.join(layers())}\n```\n\n", (BEGIN, END))


def layers() -> list[str]:
    """The layers of the contract, the topmost first; `|` stands between those that do not import each other."""
    contracts = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (found,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return list(found)
