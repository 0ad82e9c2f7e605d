"""Help pages, laid out when the program was built: so help is shown without loading the parser.

`tools/generate.py` writes `help.json` from the parser, for a few widths.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE: Final = Path(__file__).with_name("help.json")
WIDTHS: Final = (80, 60, 40)


def page(arguments: Sequence[str], columns: int) -> str | None:
    """The page that `arguments` ask for, no wider than `columns`; `None` when the parser has to decide."""
    words = [argument for argument in arguments if argument != "--json"]
    if words[-1:] not in (["--help"], ["-h"]):
        return None
    width = next((width for width in WIDTHS if width <= columns), WIDTHS[-1])
    try:
        pages: dict[str, str] = json.loads(FILE.read_text(encoding="utf-8"))[str(width)]
    except (OSError, ValueError, KeyError):  # a damaged installation: the parser can still make the page
        return None
    return pages.get(" ".join(words[:-1]))
