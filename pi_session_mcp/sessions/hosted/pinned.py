"""The pinned extensions of a session that is being created: their files, and which of them a failure belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.extensions.resolve import Place, Resolved, confirm_unchanged, resolve_all
from pi_session_mcp.sessions.hosted.reading import read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pi_session_mcp.config.model import ExecutionProfile

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PinnedExtensions:
    """The extensions that were resolved for a session, and where. False if its profile has none."""

    resolved: tuple[Resolved, ...] = ()
    place: Place | None = None

    @classmethod
    async def resolve(cls, profile: ExecutionProfile, place: Callable[[], Place], *, within_s: float) -> Self:
        """The profile's extensions as they are installed now. Raises `Refusal`."""
        if not profile.extensions:
            return cls()
        found = place()
        resolve = partial(resolve_all, profile.extensions, found)
        return cls(await _reading(resolve, Stage.EXTENSION_RESOLVE, within_s), found)

    async def confirm_unchanged(self, *, within_s: float) -> None:
        """Raise `Refusal(EXTENSION_VERSION_MISMATCH)` if a file is not the one that was resolved."""
        if self.place is not None:
            await _reading(partial(confirm_unchanged, self.resolved, self.place), Stage.EXTENSION_LOAD, within_s)

    def __bool__(self) -> bool:
        return bool(self.resolved)

    @property
    def entries(self) -> tuple[Path, ...]:
        """The files that Pi loads, in order. The host names a file by its index here, as an entry."""
        return tuple(entry.path for one in self.resolved for entry in one.entries)

    def refusal(self, code: Code, stage: Stage, *, entries: Sequence[int] = ()) -> Refusal:
        """A refusal for the extension of the first of `entries`, or for the only one; else it names none.

        The numbers come from a process that runs foreign code, so a number out of range names no extension.
        """
        owners = [str(one.pin) for one in self.resolved for _ in one.entries]
        blamed = next((owners[entry] for entry in entries if 0 <= entry < len(owners)), None)
        if blamed is None and len(self.resolved) == 1:
            blamed = owners[0]
        return Refusal(code, stage=stage, extension=blamed)


async def _reading(read: Callable[[], T], stage: Stage, within_s: float) -> T:
    try:
        return await read_within(read, within_s=within_s)
    except TimeoutError:
        raise Refusal(Code.EXTENSION_LOAD_FAILED, stage=stage) from None
