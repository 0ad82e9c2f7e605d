"""The environment in which Node runs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CERTIFICATES: Final = frozenset({"NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA"})
_CERTIFICATE_OPTIONS: Final = frozenset({"--use-openssl-ca", "--use-system-ca", "--use-bundled-ca"})
"""Which certificates Node trusts: its own, or those of OpenSSL, which `SSL_CERT_FILE` and `SSL_CERT_DIR` name."""


def without_node_options(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the variables that change how Node runs (`NODE_OPTIONS`, `NODE_PATH`, …).

    Of `NODE_OPTIONS` it keeps the options that only say where trusted certificates come from.
    """
    kept = {name: value for name, value in environ.items() if not name.startswith("NODE_") or name in _CERTIFICATES}
    options = certificate_options(environ)
    return kept | ({"NODE_OPTIONS": " ".join(options)} if options else {})


def certificate_options(environ: Mapping[str, str]) -> list[str]:
    """The options in `NODE_OPTIONS` that say where trusted certificates come from."""
    return [word for word in environ.get("NODE_OPTIONS", "").split() if word in _CERTIFICATE_OPTIONS]
