"""What Pi answered of its files, its proxies, the workspaces and the profiles. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pi_session_mcp.host.protocol import PiFault


@dataclass(frozen=True, slots=True)
class Profile:
    """What Pi said of one execution profile, by its alias.

    `refused` is the code with which a start would be refused, as far as Pi could tell. `unasked` is `command` or
    `renewal` when Pi could not tell whether a credential works: a command would have to run, or a login to be renewed.
    An extension may bring what is missing to a profile that `may_be_extended`. Without an answer in time nothing is
    known.
    """

    alias: str
    answered: bool = True
    refused: str | None = None
    unasked: str | None = None
    may_be_extended: bool = False


@dataclass(frozen=True, slots=True)
class PiAnswer:
    """What Pi said of everything.

    `sdk_loads` says whether Node loaded an SDK that can be used. `files` are the faults in Pi's files, if Pi came to
    look at them. `proxies` says whether the proxy variables are usable, and `proxy_setting` whether Pi's settings name
    a proxy. `left_out` says, for each workspace that could be looked at, whether a session would go without files of
    instructions that are there.
    """

    sdk_loads: bool
    files: tuple[PiFault, ...] | None
    proxies: bool
    profiles: tuple[Profile, ...]
    proxy_setting: bool = False
    left_out: Mapping[str, bool] = field(default_factory=dict)

    @property
    def can_start(self) -> bool:
        """Whether nothing but a profile could make a start fail."""
        return self.files == () and self.proxies and self.sdk_loads
