"""The canary tries the versions it should, and sees when the SDK and we disagree about the names of tools."""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from pathlib import Path
from typing import get_args

import pytest

from pi_session_mcp.runtime.toolchain import Toolchain
from pi_session_mcp.sessions.ports import Preflight
from pi_session_mcp.sessions.state import turn_end
from pi_session_mcp.terms.selection import ThinkingLevel
from tests.support.runtimes import program
from tools.canary import ROOT, CanaryError, Names, Verdict, _published, chosen, differences, table, type_differences

AGREED = Names(
    built_in=frozenset({"read", "bash", "powershell", "edit", "write", "grep", "find", "ls"}),
    mcp=frozenset({"mcp__docs__search", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}),
)


@pytest.mark.parametrize(
    ("published", "named", "expected"),
    [
        (["1.4.0", "1.5.1", "1.5.2", "1.6.0"], [], ["1.5.2", "1.6.0"]),
        (["1.6.0", "1.5.2", "1.6.10", "1.6.9"], [], ["1.5.2", "1.6.0", "1.6.9", "1.6.10"]),
        (["1.6.0", "1.7.0", "1.8.0"], [], ["1.6.0", "1.8.0"]),
        (["1.6.0", "1.7.0-beta.1"], [], ["1.6.0"]),
        (["1.5.2", "1.6.0", "1.7.0", "1.8.0"], ["1.7.0", "1.5.2"], ["1.5.2", "1.7.0"]),
    ],
)
def test_the_tested_range_and_the_newest_release_are_tried(
    published: list[str], named: list[str], expected: list[str]
) -> None:
    assert chosen(published, named) == expected


@pytest.mark.parametrize(
    ("published", "named", "word"),
    [(["1.6.0"], ["1.6.1"], "1.6.1"), (["1.4.0", "2.0.0"], [], "tested range"), ([], [], "tested range")],
)
def test_a_canary_with_nothing_to_try_does_not_pass(published: list[str], named: list[str], word: str) -> None:
    with pytest.raises(CanaryError, match=word):
        chosen(published, named)


def test_a_registry_that_cannot_be_asked_is_no_verdict(tmp_path: Path) -> None:
    npm = program(tmp_path / "npm", "exit 1")

    with pytest.raises(CanaryError, match="did not say"):
        _published(Toolchain(Path(sys.executable), (str(npm),)))


@pytest.mark.parametrize(("said", "versions"), [('["1.5.2", "1.6.0"]', ["1.5.2", "1.6.0"]), ('"1.6.0"', ["1.6.0"])])
def test_a_registry_may_have_one_version_or_several(tmp_path: Path, said: str, versions: list[str]) -> None:
    npm = program(tmp_path / "npm", f"echo '{said}'")

    assert _published(Toolchain(Path(sys.executable), (str(npm),))) == versions


def test_names_that_are_the_same_on_both_sides_make_no_difference() -> None:
    assert differences(AGREED) == []


@pytest.mark.parametrize(
    ("built_in", "mcp", "word"),
    [
        (AGREED.built_in | {"fetch"}, AGREED.mcp, "its built-in tool fetch"),
        (AGREED.built_in - {"grep"}, AGREED.mcp, "our tool grep"),
        (AGREED.built_in, AGREED.mcp | {"call_mcp_prompt"}, "call_mcp_prompt is an MCP tool to it, and not refused"),
        (AGREED.built_in, AGREED.mcp - {"read_mcp_resource"}, "read_mcp_resource is no MCP tool"),
        (AGREED.built_in, AGREED.mcp - {"mcp__docs__search"}, "mcp__docs__search is no MCP tool"),
        (AGREED.built_in, AGREED.mcp | {"mcp_docs_search"}, "although we grant it"),
    ],
)
def test_a_name_that_one_side_treats_specially_and_the_other_does_not_is_told(
    built_in: frozenset[str], mcp: frozenset[str], word: str
) -> None:
    assert any(word in line for line in differences(Names(built_in, mcp)))


def test_the_table_says_of_each_version_where_it_stands_and_what_came_of_it() -> None:
    verdicts = [
        Verdict("1.5.2", passed=True, seen="9 passed"),
        Verdict("1.6.0", passed=False, seen="1 failed"),
        Verdict("1.10.0", passed=False, seen="npm could not install it"),
    ]

    assert table(verdicts).splitlines() == [
        "Pi SDK  range   result  seen",
        "1.5.2   tested  pass    9 passed",
        "1.6.0   pinned  FAIL    1 failed",
        "1.10.0  beyond  FAIL    npm could not install it",
    ]
    assert [verdict.is_binding for verdict in verdicts] == [True, True, False]


TYPES = "export const stopReasons = true;\ntype Made = 1;\nexport type Stores = 2;\n"


def test_each_type_that_does_not_compile_is_told_once_by_its_name() -> None:
    said = "sdk_types.ts(3,1): error: more\n  text(1,1)\n/x/sdk_types.ts(1,14): error\n/x/sdk_types.ts(1,2): error"

    assert type_differences(said, TYPES, failed=True) == [
        "its types differ from sdk.d.ts: stopReasons",
        "its types differ from sdk.d.ts: Stores",
    ]


@pytest.mark.parametrize("said", ["", "error TS6053: File not found.", "sdk_types.ts(2,6): error TS1: in between"])
def test_a_comparison_of_types_that_could_not_be_made_is_a_difference(said: str) -> None:
    assert type_differences(said, TYPES, failed=True) == ["its types could not be compared with sdk.d.ts"]
    assert type_differences("", TYPES, failed=False) == []


def restated(name: str) -> set[str]:
    """The members of a union of texts in `sdk.d.ts`."""
    source = (ROOT / "pi_session_mcp/host/js/sdk.d.ts").read_text("utf-8")
    found = re.search(rf"(?m)^export type {name} = (.*);$", source)
    assert found is not None
    return set(json.loads(f"[{found[1].replace(' | ', ', ')}]"))


def test_every_stop_reason_that_the_canary_compares_has_its_place_in_the_table_of_states() -> None:
    (table,) = (node for node in ast.walk(ast.parse(inspect.getsource(turn_end))) if isinstance(node, ast.Match))
    named = {node.value for case in table.cases for node in ast.walk(case.pattern) if isinstance(node, ast.Constant)}

    assert restated("StopReason") == named - {None}


def test_the_thinking_levels_that_the_canary_compares_are_those_of_the_configuration() -> None:
    assert restated("ThinkingLevel") == set(get_args(ThinkingLevel))


def test_the_words_of_a_preflight_that_the_canary_compares_are_those_of_the_protocol() -> None:
    assert restated("Preflight") | {"rejected"} == {word.value for word in Preflight}
