"""What a benchmark consists of: parts with a text, verdicts and values, and the summary over all of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.report import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.budgets import Verdict


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a benchmark that was run."""

    mark: str
    """Between which marks of the document its text belongs."""
    title: str
    text: str
    verdicts: Sequence[Verdict] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the JSON says of it."""
    failures: Sequence[str] = ()

    def in_document(self) -> str:
        """The text with its headings one level lower, and what failed."""
        failures = "".join(f"\n- {failure}" for failure in self.failures)
        return self.text.replace("## ", "### ").strip() + (f"\n\n### Failures\n{failures}" if failures else "")


def as_text(part: Part) -> str:
    """A part for a person: its title, tables and failures."""
    failures = "".join(f"- {failure}\n" for failure in part.failures)
    return f"# {part.title}\n\n{part.text.strip()}\n" + (f"\n## Failures\n\n{failures}" if failures else "")


def summary(parts: Sequence[Part]) -> str:
    """What is over budget, what could not be measured and what failed, in all parts; or that nothing is."""
    verdicts = [verdict for part in parts for verdict in part.verdicts]
    over = [f"{verdict.budget.what}: {words(verdict)}" for verdict in verdicts if verdict.met is False]
    unknown = [f"{verdict.budget.what}: not measured" for verdict in verdicts if verdict.met is None]
    failed = [f"{part.title}: {failure}" for part in parts for failure in part.failures]
    head = f"# Over budget: {len(over)} of {len(verdicts)}"
    return "\n".join([head, "", *(f"- {line}" for line in [*over, *unknown, *failed] or ["nothing"])]) + "\n"
