"""Checks of the documents: relative links lead somewhere, code fences are closed, no word is used that we avoid.

Run from the root of a checkout; prints one line for each fault and exits with 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each word with what to write instead; matched as a whole word, outside code.
AVOIDED: Final = {
    "simply": "nothing",
    "obviously": "nothing",
    "seamless": "what it does",
    "seamlessly": "what it does",
    "blazing": "a figure",
    "leverage": "use",
    "utilize": "use",
    "whitelist": "list of what is allowed",
    "blacklist": "list of what is refused",
    "sanity check": "check",
}

_FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+)\s*([\w-]*)")
_LINK: Final = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
_HEADING: Final = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_CODE: Final = re.compile(r"`[^`]*`")
_MERMAID_KINDS: Final = ("sequenceDiagram", "flowchart", "graph", "stateDiagram", "classDiagram", "erDiagram", "%%")


def main(root: Path) -> int:
    """Print the faults of every document below `root`; 0 if there is none."""
    documents = sorted(path for path in [*root.glob("*.md"), *root.glob("docs/**/*.md")] if path.is_file())
    faults = [fault for path in documents for fault in document_faults(path, root)]
    for fault in faults:
        print(fault)
    print(f"{len(documents)} documents, {len(faults)} faults")
    return 1 if faults or not documents else 0


def document_faults(path: Path, root: Path) -> Iterator[str]:
    """Each fault of one document as a line `file:line: what`."""
    name = path.relative_to(root)
    lines = path.read_text(encoding="utf-8").splitlines()
    yield from (f"{name}:{number}: {what}" for number, what in fence_faults(lines))
    for number, line in prose(lines):
        yield from (f"{name}:{number}: {what}" for what in link_faults(line, path, root))
        yield from (f"{name}:{number}: {what}" for what in word_faults(line))


def fence_faults(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Fences that are never closed, and Mermaid fences that do not begin with a kind of diagram."""
    opened: tuple[int, str] | None = None
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if opened is None and fence is not None:
            opened = (number, fence[1])
            if fence[2] == "mermaid" and not _begins_a_diagram(lines[number:]):
                yield number, "a Mermaid fence names no kind of diagram"
        elif opened is not None and fence is not None and not fence[2] and fence[1].startswith(opened[1]):
            opened = None
    if opened is not None:
        yield opened[0], "a code fence is never closed"


def prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines outside code fences, with their numbers."""
    closing = ""
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence is not None and (not closing or (not fence[2] and fence[1].startswith(closing))):
            closing = "" if closing else fence[1]
        elif not closing:
            yield number, line


def link_faults(line: str, path: Path, root: Path) -> Iterator[str]:
    """Links that lead to no file of the checkout, or to no heading of a document."""
    for target in _LINK.findall(_CODE.sub("", line)):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / unquote(file)).resolve() if file else path
        if not found.exists() or not found.is_relative_to(root.resolve()):
            yield f"the link {target} leads nowhere"
        elif anchor and found.suffix == ".md" and anchor not in anchors(found):
            yield f"the link {target} names no heading there"


def anchors(path: Path) -> frozenset[str]:
    """The names under which a document's headings can be linked to, as code hosts make them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    titles = (match[1] for _, line in prose(lines) if (match := _HEADING.match(line)))
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def word_faults(line: str) -> Iterator[str]:
    """Words that say less than they seem to."""
    text = _CODE.sub("", line).lower()
    for word, instead in AVOIDED.items():
        if re.search(rf"\b{re.escape(word)}\b", text):
            yield f"instead of “{word}” write {instead}"


def _begins_a_diagram(lines: list[str]) -> bool:
    first = next((line.strip() for line in lines if line.strip()), "")
    return first.startswith(_MERMAID_KINDS)


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
