"""Which variables that decide about a Pi host's network a client keeps from its servers. Pure.

Claude Code gives a server its whole environment, and Codex (0.171) a short list. Of other clients nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROXIES: Final = tuple(name for word in ("http", "https", "all") for name in (f"{word}_proxy", f"{word}_PROXY".upper()))
"""Each names a proxy, which Pi's own setting can name as well."""
CERTIFICATES: Final = ("NODE_OPTIONS", "NODE_USE_SYSTEM_CA")
"""Each says where trusted certificates come from; setup takes an entry of Codex that names them for somebody else's."""
ALL_VARIABLES: Final = "variables"
"""The subject when none of them is kept back."""
NAMES: Final = (*PROXIES, "no_proxy", "NO_PROXY", *CERTIFICATES)
"""What Codex does not pass on; it does with `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE`."""


def kept_back(environ: Mapping[str, str], passed: frozenset[str]) -> Iterator[str]:
    """Those that are set to something here, and that Codex does not give a server whose entry names `passed`."""
    from pi_session_mcp.runtime.node_environment import certificate_options

    for name in NAMES:
        if name not in passed and environ.get(name) and (name != "NODE_OPTIONS" or certificate_options(environ)):
            yield name
