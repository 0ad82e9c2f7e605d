"""A registration in a client: our command, its arguments and one variable. Pure."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pi_session_mcp.terms.variable import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

ARGUMENTS: Final = ("serve",)

PASSED_ON: Final = frozenset(
    {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)
"""Variables that people add to a registration because their client passes little on. They change the way to the network
and not what is started; any other variable might (`LD_PRELOAD`, `NODE_OPTIONS`), and makes a registration another's."""

_AMBIGUOUS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Registration:
    """A command with its arguments and its environment: ours, or what a client shows.

    An inspection returns one when it could read all of it. So its fingerprint can be compared with a record that
    another version of us wrote at another path.
    """

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def fingerprint(self) -> str:
        """SHA-256 of all three, in hexadecimal digits. Only equal registrations have the same."""
        parts = [self.command, list(self.arguments), sorted(self.environment.items())]
        # ASCII, so that a text that is not valid Unicode has one form as well.
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode("ascii")).hexdigest()


def without_passed_on(registration: Registration) -> Registration:
    """The registration without the variables that its owner may add."""
    kept = {name: value for name, value in registration.environment.items() if name not in PASSED_ON}
    return Registration(registration.command, registration.arguments, kept)


def registration_of(executable: str, configuration: str) -> Registration:
    """Our registration for these two absolute paths."""
    return Registration(executable, ARGUMENTS, MappingProxyType({VARIABLE: configuration}))


def is_plain(path: str) -> bool:
    """Whether clients show `path` so that it can be told from every other path.

    Claude Code prints control characters as spaces and cuts white space at the end of a line; a path that is not
    valid Unicode cannot be shown at all.
    """
    return path == path.strip() and not any(unicodedata.category(character) in _AMBIGUOUS for character in path)
