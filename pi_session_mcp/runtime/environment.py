"""The environment that Node is run with. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_CERTIFICATES: Final = frozenset({"NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA"})


def without_node_options(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without what changes how Node runs (`NODE_OPTIONS`, `NODE_PATH`, …), but for certificates."""
    return {name: value for name, value in environ.items() if not name.startswith("NODE_") or name in _CERTIFICATES}
