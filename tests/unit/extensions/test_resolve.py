"""What is taken for an installed extension, and what is refused, by reading files alone."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.errors import Code, Refusal, Stage
from pi_session_mcp.extensions.entries import MAX_DEPTH
from pi_session_mcp.extensions.manifest import MAX_MANIFEST_BYTES
from pi_session_mcp.extensions.outcomes import Condition
from pi_session_mcp.extensions.resolve import (
    Place,
    Resolved,
    confirm_unchanged,
    judge,
    resolve,
    resolve_all,
)
from pi_session_mcp.terms.pin import Pin
from tests.support.extensions import install_package, package_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PIN = Pin("ext", "1.0.0")
LOAD_FAILED = Code.EXTENSION_LOAD_FAILED


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    return tmp_path / "agent"


def found(agent: Path, pin: Pin = PIN, *workspaces: Path) -> Resolved:
    return resolve(pin, Place(agent, workspaces))


def refused(agent: Path, pin: Pin = PIN, *workspaces: Path) -> Code:
    with pytest.raises(Refusal) as caught:
        found(agent, pin, *workspaces)
    assert (caught.value.stage, caught.value.extension) == (Stage.EXTENSION_RESOLVE, str(pin))
    assert caught.value.__cause__ is None
    return caught.value.code


def paths(resolved: Resolved) -> list[str]:
    return [str(entry.path.relative_to(resolved.directory)) for entry in resolved.entries]


def manifest(agent: Path) -> Path:
    return package_directory(agent, "ext") / "package.json"


def test_an_installed_package_gives_its_real_directory_and_its_entries_in_order(agent: Path) -> None:
    directory = install_package(
        agent, entries=["./src/b.ts", "a.cjs", "./index.ts"], files={"src/b.ts": "", "a.cjs": ""}
    )

    resolved = found(agent)

    assert resolved.directory == directory.resolve()
    assert paths(resolved) == ["src/b.ts", "a.cjs", "index.ts"]


def test_a_scoped_name_and_a_prerelease_are_found(agent: Path) -> None:
    install_package(agent, "@scope/ext", "0.155.0-alpha.9.2")

    assert paths(found(agent, Pin("@scope/ext", "0.155.0-alpha.9.2"))) == ["index.ts"]


def test_a_store_of_linked_packages_is_followed_to_the_real_files(agent: Path, tmp_path: Path) -> None:
    store = tmp_path / "agent" / "npm" / "node_modules" / ".pnpm" / "ext@1.0.0"
    install_package(store)  # <store>/npm/node_modules/ext stands for the store's own layout
    link = package_directory(agent, "ext")
    link.symlink_to(package_directory(store, "ext"))

    resolved = found(agent)

    assert resolved.directory == package_directory(store, "ext").resolve()
    assert resolved.entries[0].path.is_relative_to(resolved.directory)


def test_an_entry_may_be_a_link_that_stays_inside_the_package(agent: Path) -> None:
    directory = install_package(agent, entries=["./linked.ts"])
    (directory / "linked.ts").symlink_to("index.ts")

    assert paths(found(agent)) == ["index.ts"]


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""], ids=["bom", "none"])
def test_a_byte_order_mark_and_windows_line_ends_are_no_fault(agent: Path, mark: bytes) -> None:
    install_package(agent)
    manifest(agent).write_bytes(mark + manifest(agent).read_bytes().replace(b", ", b",\r\n"))

    assert paths(found(agent)) == ["index.ts"]


def test_a_package_that_is_not_there_is_not_installed(agent: Path) -> None:
    assert refused(agent) is Code.EXTENSION_NOT_INSTALLED


@pytest.mark.parametrize("what", ["a file", "a dangling link", "an empty directory", "a global installation"])
def test_what_is_no_directory_with_a_manifest_is_not_installed(agent: Path, what: str) -> None:
    directory = package_directory(agent, "ext")
    directory.parent.mkdir(parents=True)
    match what:
        case "a file":
            directory.write_text("")
        case "a dangling link":
            directory.symlink_to("nowhere")
        case "an empty directory":
            directory.mkdir()
        case _:
            install_package(agent / "lib")

    assert refused(agent) is Code.EXTENSION_NOT_INSTALLED


@pytest.mark.parametrize("version", ["1.0.1", "1.0.0-rc.1", "1.0.0+build", "v1.0.0", " 1.0.0", "1.0", 1, None])
def test_any_other_version_is_a_mismatch(agent: Path, version: Any) -> None:
    install_package(agent, version=version)

    assert refused(agent) is Code.EXTENSION_VERSION_MISMATCH


def test_a_package_of_another_name_is_refused(agent: Path) -> None:
    install_package(agent)
    manifest(agent).write_text(manifest(agent).read_text().replace('"ext"', '"other"'))

    assert refused(agent) is LOAD_FAILED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        "\ufffe",
        '{"name": "ext", "version": "1.0.0", "pi": {"extensions": ["./index.ts"]}, "x": NaN}',
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_manifest_that_is_no_object_of_json_is_refused(agent: Path, text: str) -> None:
    install_package(agent)
    manifest(agent).write_text(text)

    assert refused(agent) is LOAD_FAILED


def test_a_manifest_may_be_as_large_as_its_limit_and_not_larger(agent: Path) -> None:
    install_package(agent)
    text = manifest(agent).read_text()
    manifest(agent).write_text(text + " " * (MAX_MANIFEST_BYTES - len(text)))
    assert paths(found(agent)) == ["index.ts"]

    manifest(agent).write_text(text + " " * (MAX_MANIFEST_BYTES - len(text) + 1))
    assert refused(agent) is LOAD_FAILED


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling link"])
def test_a_manifest_that_is_no_regular_file_is_refused_without_waiting(agent: Path, kind: str) -> None:
    install_package(agent)
    manifest(agent).unlink()
    match kind:
        case "directory":
            manifest(agent).mkdir()
        case "fifo":
            os.mkfifo(manifest(agent))
        case _:
            manifest(agent).symlink_to("nowhere")

    assert refused(agent) is LOAD_FAILED


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", ["package.json", "index.ts", "."])
def test_what_cannot_be_read_is_refused(agent: Path, name: str) -> None:
    path = install_package(agent) / name
    path.chmod(0)
    try:
        assert refused(agent) is LOAD_FAILED
    finally:
        path.chmod(0o700)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        None,
        "./index.ts",
        {"0": "./index.ts"},
        [7],
        ["./index.ts", None],
        [""],
        ["."],
        ["./missing.ts"],
        ["./*.mts"],
        ["!./index.ts"],
        ["+index.ts"],
        ["-index.ts"],
        ["../ext/index.ts"],
        ["./src/../index.ts"],
        ["../../outside.ts"],
        ["./in\0dex.ts"],
        ["./" + "x" * 5000],
        ["./fifo"],
        ["./link-out.ts"],
        ["./directory-out/outside.ts"],
    ],
    ids=lambda entries: json.dumps(entries)[:30],
)
def test_entries_that_are_not_plain_files_of_the_package_are_refused(agent: Path, entries: Any) -> None:
    directory = install_package(agent, entries=entries, files={"src/index.ts": ""})
    (agent / "npm" / "outside.ts").write_text("")
    (directory / "link-out.ts").symlink_to(agent / "npm" / "outside.ts")
    (directory / "directory-out").symlink_to(agent / "npm")
    os.mkfifo(directory / "fifo")

    assert refused(agent) is LOAD_FAILED


@pytest.mark.parametrize("entries", [["./src"], ["./*.ts"], ["./inde?.ts"], ["./index.ts", "index.ts"]])
def test_folders_and_patterns_name_files_as_well(agent: Path, entries: Any) -> None:
    install_package(agent, entries=entries, files={"src/index.ts": ""})

    assert paths(found(agent)) == (["src/index.ts"] if entries == ["./src"] else ["index.ts"])


@pytest.mark.parametrize("entry", ["{}/a.ts", "*/{}/a.ts"])
def test_a_path_may_have_as_many_names_as_its_limit_and_not_more(agent: Path, entry: str) -> None:
    above = "/".join("d" * (MAX_DEPTH - 1))
    written = entry.format("/".join("d" * (MAX_DEPTH - 1 - entry.count("*"))))
    install_package(agent, entries=[written], files={f"{above}/a.ts": ""})
    assert paths(found(agent)) == [f"{above}/a.ts"]

    install_package(agent, entries=["d/" + written], files={f"d/{above}/a.ts": ""})
    assert judge(PIN, Place(agent, ())).condition is Condition.FORM_UNSUPPORTED


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is UTF-8")
def test_an_entry_whose_name_is_not_utf_8_is_refused_and_another_such_name_is_no_matter(agent: Path) -> None:
    directory = install_package(agent, entries=["*.ts"], files={"a.ts": ""})
    (directory / os.fsdecode(b"odd-\xff.md")).write_text("")
    assert "a.ts" in paths(found(agent))

    (directory / os.fsdecode(b"odd-\xff.ts")).write_text("")
    assert judge(PIN, Place(agent, ())).condition is Condition.FORM_UNSUPPORTED


def test_an_absolute_entry_is_refused_also_when_it_is_in_the_package(agent: Path) -> None:
    directory = install_package(agent)
    install_package(agent, entries=[str(directory / "index.ts")])

    assert refused(agent) is LOAD_FAILED


@pytest.mark.parametrize("section", [{}, {"pi": []}, {"pi": {"skills": ["./skills"]}}])
def test_a_package_that_declares_no_extension_is_refused(agent: Path, section: dict[str, Any]) -> None:
    directory = install_package(agent)
    (directory / "package.json").write_text(json.dumps({"name": "ext", "version": "1.0.0", **section}))
    (directory / "index.ts").rename(directory / "other.ts")

    assert judge(PIN, Place(agent, ())).condition is Condition.NO_EXTENSION
    assert refused(agent) is LOAD_FAILED


def test_a_package_inside_a_workspace_is_refused_however_it_is_written(agent: Path, tmp_path: Path) -> None:
    install_package(agent)
    (tmp_path / "alias").symlink_to(agent)
    (tmp_path / "elsewhere").mkdir()

    assert refused(agent, PIN, tmp_path / "elsewhere", agent) is LOAD_FAILED
    assert refused(agent, PIN, tmp_path / "alias") is LOAD_FAILED
    assert refused(tmp_path / "alias", PIN, agent) is LOAD_FAILED
    assert found(agent, PIN, tmp_path / "elsewhere")


def test_a_package_that_is_linked_into_a_workspace_is_refused(agent: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    install_package(workspace)
    package_directory(agent, "ext").parent.mkdir(parents=True)
    package_directory(agent, "ext").symlink_to(package_directory(workspace, "ext"))

    assert refused(agent, PIN, workspace) is LOAD_FAILED


def test_the_first_pin_that_cannot_be_had_is_named(agent: Path) -> None:
    install_package(agent)

    with pytest.raises(Refusal) as caught:
        resolve_all([PIN, Pin("@other/one", "2.0.0"), Pin("third", "1.0.0")], Place(agent, ()))

    assert caught.value.extension == "@other/one@2.0.0"


def rewrite_manifest(directory: Path) -> None:
    (directory / "package.json").write_text((directory / "package.json").read_text() + "\n")


def replace_entry(directory: Path) -> None:
    seen = (directory / "index.ts").stat()
    (directory / "new").write_bytes((directory / "index.ts").read_bytes())
    os.utime(directory / "new", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    (directory / "new").rename(directory / "index.ts")


def rewrite_entry_in_place(directory: Path) -> None:
    seen = (directory / "index.ts").stat()
    os.utime(directory / "index.ts", ns=(seen.st_atime_ns, seen.st_mtime_ns + 1))


def remove(directory: Path) -> None:
    directory.rename(directory.with_name("removed"))


@pytest.mark.parametrize("change", [rewrite_manifest, replace_entry, rewrite_entry_in_place, remove])
def test_a_package_that_changed_since_is_a_version_mismatch(agent: Path, change: Callable[[Path], None]) -> None:
    directory = install_package(agent)
    place = Place(agent, ())
    before = resolve_all([PIN], place)
    confirm_unchanged(before, place)

    change(directory)

    with pytest.raises(Refusal) as caught:
        confirm_unchanged(before, place)
    refusal = caught.value
    assert (refusal.code, refusal.stage) == (Code.EXTENSION_VERSION_MISMATCH, Stage.EXTENSION_LOAD)
    assert refusal.extension == "ext@1.0.0"
