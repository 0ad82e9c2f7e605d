"""A file of the checkout that is made from the program, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Generated:
    """The whole of a file, or what stands between the two `marks` of a document that is otherwise written by hand."""

    path: Path
    """Relative to the root of the checkout."""
    text: str
    marks: tuple[str, str] | None = None

    def within(self, before: str) -> str:
        """The file as it should be, where it is `before`; a document without marks gets them at its end."""
        if self.marks is None:
            return self.text
        begin, end = self.marks
        head, _, rest = before.partition(begin)
        _, _, tail = rest.partition(end)
        return f"{head}{begin}\n{self.text}{end}{tail}"
