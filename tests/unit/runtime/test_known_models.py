"""What Pi's files say about models, and that damaged ones say nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.runtime.known_models import Known, Model, known_models

if TYPE_CHECKING:
    from pathlib import Path


def write(directory: Path, name: str, value: Any) -> None:
    """One of Pi's files."""
    (directory / name).write_text(value if isinstance(value, str) else json.dumps(value))


def catalogue(package: Path, provider: str, models: list[dict[str, Any]]) -> None:
    """What comes with the SDK for one provider."""
    data = package.parent / "pi-ai" / "dist" / "providers" / "data"
    data.mkdir(parents=True)
    write(data, f"{provider}.json", {"api": {f"{index}": one for index, one in enumerate(models)}})


def test_without_files_nothing_is_known(tmp_path: Path) -> None:
    assert known_models(tmp_path / "absent", None) == Known({})


def test_a_provider_is_known_by_its_credential_or_by_models_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, "auth.json", {"anthropic": {"type": "oauth"}, "odd": "text"})
    write(tmp_path, "models.json", {"providers": {"mine": {"models": [{"id": "a"}]}, "proxied": {"baseUrl": "x"}}})

    assert known_models(tmp_path, None).providers == {"anthropic": (), "mine": (Model("a", ("off",)),)}


def test_the_models_of_a_provider_with_a_credential_come_from_the_sdk_after_its_own(tmp_path: Path) -> None:
    package = tmp_path / "pi-coding-agent"
    catalogue(package, "anthropic", [{"id": "b"}, {"id": "a"}, {"id": "picture", "type": "image"}])
    write(tmp_path, "auth.json", {"anthropic": {}})
    write(tmp_path, "models.json", {"providers": {"anthropic": {"models": [{"id": "a", "reasoning": True}]}}})

    found = known_models(tmp_path, package).providers["anthropic"]

    assert [model.id for model in found] == ["a", "b"]
    assert found[0].usual_level == "medium"


def test_the_catalogue_names_the_other_providers_without_a_login(tmp_path: Path) -> None:
    package = tmp_path / "pi-coding-agent"
    catalogue(package, "anthropic", [{"id": "a"}])
    (package.parent / "pi-ai" / "dist" / "providers" / "data" / "notes.txt").write_text("")
    (package.parent / "pi-ai" / "dist" / "providers" / "data" / "empty.json").write_text("{}")
    write(tmp_path, "models.json", {"providers": {"mine": {"models": [{"id": "b"}]}}})

    known = known_models(tmp_path, package)

    assert known.has_catalogue
    assert known.names == ("mine", "anthropic")
    assert list(known.providers) == ["mine"]
    assert known.model("anthropic", "a") is not None
    assert known.model("mine", "a") is None


@pytest.mark.parametrize(
    ("described", "usual", "highest"),
    [
        ({}, "off", "off"),
        ({"reasoning": True}, "medium", "high"),
        ({"reasoning": True, "thinkingLevelMap": {"medium": None}}, "high", "high"),
        ({"reasoning": True, "thinkingLevelMap": {"max": "x", "xhigh": None}}, "medium", "max"),
        ({"reasoning": True, "thinkingLevelMap": "odd"}, "medium", "high"),
    ],
)
def test_the_thinking_levels_of_a_model_follow_pis_rule(
    tmp_path: Path, described: dict[str, Any], usual: str, highest: str
) -> None:
    write(tmp_path, "models.json", {"providers": {"p": {"models": [{"id": "m", **described}]}}})

    model = known_models(tmp_path, None).model("p", "m")

    assert model is not None
    assert (model.usual_level, model.levels[-1]) == (usual, highest)


def test_comments_and_trailing_commas_are_forgiven_where_pi_forgives_them(tmp_path: Path) -> None:
    write(tmp_path, "models.json", '{"providers": {"p": {"models": [{"id": "a//b,}"},],},}} // end')

    known = known_models(tmp_path, None)

    assert known.model("p", "a//b,}") is not None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"providers": []}', '{"providers": {"p": {"models": {}}}}', "[" * 9999]
)
def test_a_damaged_file_says_nothing(tmp_path: Path, text: str) -> None:
    for name in ("models.json", "auth.json", "settings.json"):
        write(tmp_path, name, text)

    assert known_models(tmp_path, None).default_provider is None


def test_names_that_could_steer_a_terminal_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "models.json", {"providers": {"p": {"models": [{"id": "a\x1b[2J"}, {"id": "  "}, {"id": 1}, 2]}}})
    write(tmp_path, "settings.json", {"defaultProvider": "p\n", "defaultModel": 3, "defaultThinkingLevel": "deep"})

    assert known_models(tmp_path, None) == Known({"p": ()})
