"""The models that Pi knows on this machine, from its files only. Nothing is run, connected to or written.

Pi itself decides when a session starts. This tells what an operator probably means when a first configuration is
written. A provider is ready when Pi has a stored credential for it, or when `models.json` defines models of it. The
others are in the catalogue of the SDK, which needs no login.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pi_session_mcp.platform.reading import read_regular
from pi_session_mcp.terms.selection import THINKING_LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_BY_PREFERENCE: Final = ("medium", "high", "low", "xhigh", "max", "minimal", "off")
_ONLY_IF_MAPPED: Final = frozenset({"xhigh", "max"})
_MAX_BYTES: Final = 16 * 1024 * 1024
_STRING: Final = r'"(?:\\.|[^"\\])*+"'
_STRING_OR_COMMENT: Final = re.compile(rf"{_STRING}|//[^\n]*", re.DOTALL)
_STRING_OR_TRAILING_COMMA: Final = re.compile(rf"{_STRING}|,(\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Model:
    """One chat model of a provider. `levels` are its thinking levels."""

    id: str
    levels: tuple[str, ...]

    @property
    def usual_level(self) -> str:
        """The level when none is named: medium, or the nearest one."""
        return next((level for level in _BY_PREFERENCE if level in self.levels), "off")


@dataclass(frozen=True, slots=True)
class Known:
    """Providers by name with their models, and the model that Pi itself starts with, if its settings name one.

    `providers` are ready to be used. `others` are only in the catalogue. `has_catalogue` says whether there is one.
    """

    providers: dict[str, tuple[Model, ...]]
    others: dict[str, tuple[Model, ...]] = field(default_factory=dict)
    has_catalogue: bool = False
    default_provider: str | None = None
    default_model: str | None = None
    default_level: str | None = None

    def model(self, provider: str, model: str) -> Model | None:
        """The model of that name, if it is known."""
        return next((one for one in self.models(provider) if one.id == model), None)

    def models(self, provider: str) -> tuple[Model, ...]:
        """The models of that provider, or none if it is not known."""
        return self.providers.get(provider) or self.others.get(provider, ())

    @property
    def names(self) -> tuple[str, ...]:
        """All known providers, those that are ready first."""
        return (*self.providers, *self.others)


def known_models(agent_directory: Path, sdk_package: Path | None) -> Known:
    """What the files in Pi's agent directory say, and the catalogue of the SDK in `sdk_package`.

    A file that is missing, damaged, of another kind or over 16 MiB is ignored.
    """
    custom = _objects(_read(agent_directory / "models.json", forgiving=True).get("providers"))
    credentials = _objects(_read(agent_directory / "auth.json"))
    settings = _read(agent_directory / "settings.json")
    named = [*credentials, *(name for name, provider in custom.items() if _list(provider.get("models")))]
    known = {
        name: _models(custom.get(name, {}), _catalogue(sdk_package, name))
        for name in dict.fromkeys((*named, *_catalogued(sdk_package)))
    }
    return Known(
        {name: models for name, models in known.items() if name in named},
        {name: models for name, models in known.items() if name not in named and models},
        has_catalogue=any(True for _ in _catalogued(sdk_package)),
        default_provider=_text(settings.get("defaultProvider")),
        default_model=_text(settings.get("defaultModel")),
        default_level=_level(settings.get("defaultThinkingLevel")),
    )


def _models(provider: dict[str, Any], catalogue: Iterable[dict[str, Any]]) -> tuple[Model, ...]:
    """The provider's own models, then those of the catalogue. Of two with the same id the first counts."""
    described = (*_list(provider.get("models")), *catalogue)
    found: dict[str, Model] = {}
    for one in described:
        name = _text(one.get("id")) if isinstance(one, dict) else None
        if name is not None:
            found.setdefault(name, Model(name, _levels(one)))
    return tuple(found.values())


def _levels(described: dict[str, Any]) -> tuple[str, ...]:
    """The levels by Pi's rule: none without `reasoning`, none that is `null`, the two highest only if named."""
    if described.get("reasoning") is not True:
        return ("off",)
    mapped = described.get("thinkingLevelMap")
    given = mapped if isinstance(mapped, dict) else {}
    return tuple(
        level for level in THINKING_LEVELS if given.get(level, None if level in _ONLY_IF_MAPPED else "") is not None
    )


def _catalogued(sdk_package: Path | None) -> Iterator[str]:
    """The names of the providers in the catalogue, sorted. Each has a file of its name."""
    for directory in _data(sdk_package):
        try:
            names = sorted(path.stem for path in directory.iterdir() if path.suffix == ".json")
        except OSError:
            continue
        if names:
            yield from (name for name in names if _text(name) is not None)
            return


def _data(sdk_package: Path | None) -> Iterator[Path]:
    """Where the catalogue may be: packed in the SDK, or beside it."""
    if sdk_package is not None:
        for root in (sdk_package / "node_modules" / "@earendil-works", sdk_package.parent):
            yield root / "pi-ai" / "dist" / "providers" / "data"


def _catalogue(sdk_package: Path | None, provider: str) -> Iterator[dict[str, Any]]:
    """The chat models of a provider in the catalogue."""
    if not provider.replace("-", "").isalnum():
        return
    for directory in _data(sdk_package):
        groups = _objects(_read(directory / f"{provider}.json"))
        if groups:
            yield from (
                one
                for models in groups.values()
                for one in models.values()
                if isinstance(one, dict) and one.get("type", "chat") == "chat"
            )
            return


def _read(path: Path, *, forgiving: bool = False) -> dict[str, Any]:
    try:
        text = read_regular(path, max_bytes=_MAX_BYTES).decode("utf-8-sig")
        value = json.loads(_without_comments(text) if forgiving else text)
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _without_comments(text: str) -> str:
    """The text as JSON: Pi accepts line comments and trailing commas in `models.json`, and nothing else."""
    bare = _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else "", text)
    return _STRING_OR_TRAILING_COMMA.sub(lambda found: found[0] if found[1] is None else found[1], bare)


def _objects(value: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict):
        return {}
    return {name: one for name, one in value.items() if isinstance(one, dict)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    """A name that a configuration may have. Everything else is ignored."""
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value.strip()) <= 256:
        return None
    return value.strip()


def _level(value: Any) -> str | None:
    return value if value in THINKING_LEVELS else None
