"""The variables that decide how a Pi host reaches its providers, and whether a client gives them to the server.

Claude Code gives a server its whole environment, and Codex (0.171) gives it a short list. Of other clients nothing is
known.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.doctor.subject import VARIABLE, Check, Subject, error, fine, found, survive, warning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pi_session_mcp.doctor.installation import Installation

PROXY_INVALID: Final = error(
    "proxy_invalid",
    "proxy",
    "usable or none",
    "no usable address",
    "A [proxy variable](runtime.md#proxies-and-certificates) holds no address that can be used, so that every "
    "start is refused. A client may pass on other variables than this terminal has.",
    "Give the variables http_proxy, https_proxy and all_proxy, in small letters and capitals, whole addresses "
    "such as http://127.0.0.1:8080, or unset them.",
)
PROXY_SETTING: Final = (
    "Name the proxy as httpProxy in settings.json of Pi's agent directory. Or name this variable in the list "
    "env_vars of [mcp_servers.pi-session-mcp] in Codex's config.toml."
)
PASS_VARIABLE: Final = (
    "Name this variable in the list env_vars of [mcp_servers.pi-session-mcp] in Codex's config.toml, or unset it."
)
EXTRA_CERTIFICATES: Final = (
    "Name the file with your certificates in NODE_EXTRA_CA_CERTS, which Codex passes on, instead of this variable."
)
VARIABLE_NOT_PASSED_ON: Final = warning(
    "variable_not_passed_on",
    VARIABLE,
    "reach the server",
    "does not reach the server",
    "This server is registered in Codex, which gives its servers few variables. This variable is set here and "
    "[decides how Pi reaches providers](runtime.md#proxies-and-certificates), but Codex does not pass it on, so "
    "sessions there go without it. The subject is the variable, or `variables` when no variable is affected.",
    PROXY_SETTING,
    PASS_VARIABLE,
    EXTRA_CERTIFICATES,
)
PROXIES: Final = tuple(name for word in ("http", "https", "all") for name in (f"{word}_proxy", f"{word}_PROXY".upper()))
"""Each names a proxy, which Pi's own setting can name as well."""
CERTIFICATES: Final = ("NODE_OPTIONS", "NODE_USE_SYSTEM_CA")
"""Each says which certificates are trusted. Setup does not take an entry of Codex that names one for its own."""
ALL_VARIABLES: Final = "variables"
"""The subject when no variable is kept back."""
NAMES: Final = (*PROXIES, "no_proxy", "NO_PROXY", *CERTIFICATES)
"""What Codex does not pass on. It does pass on `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE`."""
_CODEX: Final = "codex"
_MAX_FILE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Network:
    """Whether the proxies are usable and whether Pi's settings name one; and which variables a client keeps back.

    `None` stands for what is not known.
    """

    proxies: bool | None
    proxy_setting: bool
    kept_back: tuple[str, ...] | None


def _look(here: Installation) -> Network:
    answer = here.answer
    kept = survive(partial(kept_back_variables, here.registered_clients, here.environ), None)
    return (
        Network(answer.proxies, answer.proxy_setting, kept)
        if answer
        else Network(None, proxy_setting=False, kept_back=kept)
    )


def kept_back_variables(clients: frozenset[str] | None, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """The variables that one of these clients will keep from the server; `None` when the clients are not known."""
    if clients is None:
        return None
    return tuple(kept_back(environ, _passed_by_entry(environ))) if _CODEX in clients else ()


def _passed_by_entry(environ: Mapping[str, str]) -> frozenset[str]:
    """The variables that our entry in Codex's own configuration names; nothing where it cannot be read."""
    from pi_session_mcp.setup.targets import ALIAS

    directory = Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", "/")) / ".codex")
    try:
        with (directory / "config.toml").open("rb") as file:
            entry: Any = tomllib.loads(file.read(_MAX_FILE_BYTES).decode())["mcp_servers"][ALIAS]
        names = [*entry.get("env_vars", ()), *entry.get("env", {})]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str))


def kept_back(environ: Mapping[str, str], passed: frozenset[str]) -> Iterator[str]:
    """Those of `NAMES` that have a value here, and that Codex does not give to a server whose entry names `passed`."""
    from pi_session_mcp.runtime.node_environment import certificate_options

    for name in NAMES:
        if name not in passed and environ.get(name) and (name != "NODE_OPTIONS" or certificate_options(environ)):
            yield name


def _verdict(seen: Network) -> Iterator[Check]:
    """A variable that names a proxy counts as lost only where Pi's settings name none."""
    if seen.proxies is not None:
        yield fine(PROXY_INVALID) if seen.proxies else found(PROXY_INVALID)
    if seen.kept_back is None:
        return
    lost = [name for name in seen.kept_back if not (seen.proxy_setting and name in PROXIES)]
    if not lost:
        yield fine(VARIABLE_NOT_PASSED_ON, ALL_VARIABLES)
    for name in lost:
        other = EXTRA_CERTIFICATES if name in CERTIFICATES else PASS_VARIABLE
        yield found(VARIABLE_NOT_PASSED_ON, PROXY_SETTING if name in PROXIES else other, name)


SUBJECT: Final = Subject((PROXY_INVALID, VARIABLE_NOT_PASSED_ON), _look, _verdict)
