"""The budgets as a picture: what was measured as a share of what is allowed, beside the limit.

`bars` is pure and decides what is shown; `picture` lays it out with matplotlib, which only this function needs, and
which the extra `bench` brings.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.report import amount, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from benchmarks.budgets import Verdict

MOST_SHOWN: Final = 2.0
"""A bar that is longer ends here; its label has the figure."""
# Blue and orange differ for every kind of colour vision, and a missed budget is hatched as well.
_COLOURS: Final = {True: "#2f6fab", False: "#d9730d", None: "#9a9a9a"}
_HATCHES: Final = {True: "", False: "///", None: ""}
_STYLE: Final[dict[Any, Any]] = {
    "svg.hashsalt": "pi-session-mcp",  # the same figures make the same file
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.size": 9,
    "hatch.linewidth": 0.6,
}
_INCHES: Final = (10.0, 0.36)
"""The width of the whole, and the height of a bar with its gap."""
_HEAD_INCHES: Final = 1.1


@dataclass(frozen=True, slots=True)
class Bar:
    """One budget in the picture. `length` is at most `MOST_SHOWN`; `met` is `None` when it was not measured."""

    what: str
    length: float
    label: str
    met: bool | None


def bars(verdicts: Sequence[Verdict]) -> list[Bar]:
    """A bar for each budget, in the same order."""
    return [_bar(verdict) for verdict in verdicts]


def _bar(verdict: Verdict) -> Bar:
    what = verdict.budget.what.replace("`", "")
    if verdict.measured is None:
        return Bar(what, 0.0, "not measured", None)
    label = f"{number(verdict.measured)} of {amount(verdict.limit, verdict)}"
    return Bar(what, _length(verdict), label if verdict.met else f"{label}, MISSED", verdict.met)


def _length(verdict: Verdict) -> float:
    share = verdict.share
    if share is None:  # nothing is allowed
        share = 0.0 if verdict.met else MOST_SHOWN
    return min(max(share, 0.0), MOST_SHOWN)


def picture(shown: Sequence[Bar], caption: str) -> bytes:
    """The bars as an SVG on white, which reads on a dark page, too. Raises `ImportError` without matplotlib."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    width, height = _INCHES
    with mpl.rc_context(_STYLE), io.BytesIO() as written:
        figure = Figure(figsize=(width, _HEAD_INCHES + height * len(shown)), layout="constrained", facecolor="white")
        _draw(figure.add_subplot(), shown, caption)
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
        return written.getvalue()


def _draw(axes: Axes, shown: Sequence[Bar], caption: str) -> None:
    places = range(len(shown))
    drawn = axes.barh(
        places,
        [bar.length for bar in shown],
        height=0.62,
        color=[_COLOURS[bar.met] for bar in shown],
        hatch=[_HATCHES[bar.met] for bar in shown],
        edgecolor="white",
        linewidth=0,
    )
    axes.bar_label(drawn, [f"{bar.label} " for bar in shown], padding=4)
    axes.axvline(1.0, color="black", linewidth=1.2, linestyle="--")
    axes.set_yticks(places, [bar.what for bar in shown])
    axes.invert_yaxis()
    axes.set_xlim(0, MOST_SHOWN * 1.3)
    axes.set_xticks([0, 0.5, 1, 1.5, 2], ["0", "50 %", "the limit", "150 %", "200 %\nor more"])
    axes.set_title(caption, loc="left", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
