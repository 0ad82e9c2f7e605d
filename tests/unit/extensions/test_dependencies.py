"""What a package declares to depend on is looked for where Node would look."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.errors import Code, Refusal
from pi_session_mcp.extensions.dependencies import MAX_PACKAGES
from pi_session_mcp.extensions.outcomes import Condition
from pi_session_mcp.extensions.resolve import Place, judge, resolve
from pi_session_mcp.terms.pin import Pin
from tests.support.extensions import install_package, package_directory

if TYPE_CHECKING:
    from pathlib import Path

PIN = Pin("ext", "1.0.0")
MISSING, OUTSIDE = Condition.DEPENDENCY_MISSING, Condition.DEPENDENCY_OUTSIDE
NEEDS: dict[str, Any] = {"dependencies": {"dep": "^1.0.0"}}


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    return tmp_path / "home" / "agent"


def package(directory: Path, **manifest: Any) -> Path:
    directory.mkdir(parents=True)
    (directory / "package.json").write_text(json.dumps({"name": directory.name, "version": "1.0.0", **manifest}))
    return directory


def condition(agent: Path, *workspaces: Path) -> Condition | None:
    judgement = judge(PIN, Place(agent, workspaces))
    assert judgement.resolved is not None
    return judgement.condition


def test_a_dependency_is_found_in_the_package_and_beside_it(agent: Path) -> None:
    directory = install_package(agent, dependencies={"nested": "1", "hoisted": "1", "@scope/hoisted": "1"})
    package(directory / "node_modules" / "nested")
    package(package_directory(agent, "hoisted"))
    assert condition(agent) is MISSING

    package(package_directory(agent, "@scope/hoisted"))

    assert condition(agent) is None


def test_a_store_of_linked_packages_has_the_dependencies_beside_the_real_directory(agent: Path) -> None:
    modules = agent / "npm" / "node_modules"
    store = modules / ".pnpm" / "ext@1.0.0" / "node_modules"
    store.mkdir(parents=True)
    install_package(agent, **NEEDS).rename(store / "ext")
    (modules / "ext").symlink_to(".pnpm/ext@1.0.0/node_modules/ext")
    assert condition(agent) is MISSING

    (store / "dep").symlink_to("../../dep@1.0.0/node_modules/dep")
    assert condition(agent) is MISSING, "the link leads nowhere"

    package(modules / ".pnpm" / "dep@1.0.0" / "node_modules" / "dep")
    assert condition(agent) is None


@pytest.mark.parametrize("what", ["a dangling link", "a circle", "an empty directory", "a file", "a closed directory"])
def test_what_node_would_not_load_is_missing(agent: Path, what: str) -> None:
    install_package(agent, **NEEDS)
    place = package_directory(agent, "dep")
    match what:
        case "a dangling link":
            place.symlink_to("nowhere")
        case "a circle":
            place.symlink_to(place)
        case "an empty directory":
            place.mkdir()
        case "a file":
            place.write_text("")
        case _ if os.geteuid() == 0:
            pytest.skip("root may read everything")
        case _:
            package(place).chmod(0)
    try:
        assert condition(agent) is MISSING
    finally:
        if what == "a closed directory":
            place.chmod(0o700)


def test_what_a_dependency_needs_is_looked_for_as_well(agent: Path) -> None:
    install_package(agent, **NEEDS)
    package(package_directory(agent, "dep"), dependencies={"deeper": "1"}, peerDependencies={"peer": "1"})
    assert condition(agent) is MISSING

    package(package_directory(agent, "dep") / "node_modules" / "deeper", dependencies={"dep": "1"})

    assert condition(agent) is None


@pytest.mark.parametrize(
    "manifest",
    [
        {"dependencies": {"optional": "1"}, "optionalDependencies": {"optional": "1"}},
        {"devDependencies": {"only-for-its-author": "1"}},
        {"peerDependencies": {"@earendil-works/pi-coding-agent": "*", "@mariozechner/pi-ai": "*", "typebox": "*"}},
        {"dependencies": {"@earendil-works/pi-tui": "*", "@sinclair/typebox": "*"}},
        {"peerDependencies": {"react": "*"}, "peerDependenciesMeta": {"react": {"optional": True}}},
        {"dependencies": {"@types/node": "22"}},
        {"dependencies": {"../../outside": "1", "": "1", "a/b/c": "1", "nul\0": "1"}},
        {"dependencies": ["dep"], "peerDependencies": "dep"},
    ],
    ids="-".join,
)
def test_what_need_not_be_installed_is_not_missed(agent: Path, manifest: dict[str, Any]) -> None:
    install_package(agent, **manifest)

    assert condition(agent) is None


@pytest.mark.parametrize("meta", [{}, {"peerDependenciesMeta": {"react": {"optional": False}}}])
def test_a_peer_that_nobody_provides_is_missed(agent: Path, meta: dict[str, Any]) -> None:
    install_package(agent, peerDependencies={"react": "*"}, **meta)

    assert condition(agent) is MISSING


@pytest.mark.parametrize("how", ["a link", "a directory above"])
def test_a_dependency_outside_of_the_agent_directory_is_said(agent: Path, tmp_path: Path, how: str) -> None:
    install_package(agent, **NEEDS)
    if how == "a link":
        package_directory(agent, "dep").symlink_to(package(tmp_path / "checkout"))
    else:
        package(tmp_path / "home" / "node_modules" / "dep")

    assert condition(agent) is OUTSIDE


def test_a_package_that_is_linked_in_whole_may_have_its_dependencies_where_it_is(agent: Path, tmp_path: Path) -> None:
    made = install_package(tmp_path / "store", **NEEDS)
    package(package_directory(tmp_path / "store", "dep"))
    package_directory(agent, "ext").parent.mkdir(parents=True)
    package_directory(agent, "ext").symlink_to(made)

    assert condition(agent) is None


def test_a_dependency_inside_a_workspace_is_refused(agent: Path, tmp_path: Path) -> None:
    install_package(agent, **NEEDS)
    package_directory(agent, "dep").symlink_to(package(tmp_path / "workspace" / "dep"))
    place = Place(agent, (tmp_path / "workspace",))

    assert judge(PIN, place).condition is Condition.IN_WORKSPACE
    with pytest.raises(Refusal) as caught:
        resolve(PIN, place)
    assert caught.value.code is Code.EXTENSION_LOAD_FAILED


def test_a_broken_manifest_of_a_dependency_harms_nobody(agent: Path) -> None:
    install_package(agent, **NEEDS)
    (package(package_directory(agent, "dep")) / "package.json").write_text("{")

    assert condition(agent) is None


@pytest.mark.parametrize(("place", "seen"), [(MAX_PACKAGES - 2, MISSING), (MAX_PACKAGES - 1, None)])
def test_no_more_packages_are_looked_into_than_the_limit(agent: Path, place: int, seen: Condition | None) -> None:
    names = [f"p{number:05}" for number in range(MAX_PACKAGES + 1)]
    install_package(agent, dependencies=dict.fromkeys(names, "1"))
    for name in names:
        package(package_directory(agent, name))

    package_directory(agent, names[place]).joinpath("package.json").write_text('{"dependencies": {"gone": "1"}}')

    assert condition(agent) is seen  # the extension itself is the first of them
