"""Our `grep`, `ls` and `read` tell a model what Pi's own would, wherever no bound is in the way."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.host_script import run_in_node

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime

BOTH = """
const { FileCall, FILE_TOOLS } = await load("file_tools");
const { cwd, cases } = given;
const root = given.root ?? undefined;
const answers = [];
for (const [tool, parameters] of cases) {
  const ours = new FileCall(sdk, { tool, cwd, root, parameters, autoResizeImages: true }, { signal: undefined });
  answers.push([
    await told(() => ours.result().then(textOf)),
    await told(() => FILE_TOOLS[tool](sdk)(cwd).execute("", parameters).then(textOf)),
  ]);
}
return answers;
"""

GREP: list[dict[str, object]] = [
    {"pattern": "needle"},
    {"pattern": "n.e[de]+le"},
    {"pattern": "NEEDLE"},
    {"pattern": "NEEDLE", "ignoreCase": True},
    {"pattern": "a.b", "literal": True},
    {"pattern": "needle", "glob": "*.ts"},
    {"pattern": "needle", "glob": "./src/*.ts"},
    {"pattern": "needle", "glob": "!*.ts"},
    {"pattern": "needle", "path": "src"},
    {"pattern": "needle", "path": "src/a.ts"},
    {"pattern": "needle", "path": "binary"},
    {"pattern": "needle", "path": "bom"},
    {"pattern": "needle", "path": "utf16"},
    {"pattern": "needle", "path": "crlf"},
    {"pattern": "needle", "path": "latin1"},
    {"pattern": "needle", "path": "long"},
    {"pattern": "end", "path": "long"},
    {"pattern": "needle", "path": "wide"},
    {"pattern": "needle", "context": 1},
    {"pattern": "line 5$", "path": "many", "context": 2},
    {"pattern": "line", "path": "many", "context": 2, "limit": 3},
    {"pattern": "line", "path": "many", "limit": 3},
    {"pattern": "line", "path": "many", "limit": 2.9},
    {"pattern": "line", "path": "many", "limit": -1},
    {"pattern": "line", "path": "many", "limit": 20},
    {"pattern": "line", "path": "many", "limit": 21},
    {"pattern": "line 9$", "path": "many", "limit": 1, "context": 30},
    {"pattern": "x", "path": "full", "limit": 1000},
    {"pattern": "nothing"},
    {"pattern": "("},
    {"pattern": "a\nb"},
    {"pattern": "x", "glob": "["},
    {"pattern": "--files"},
    {"pattern": "needle", "path": "-dash"},
    {"pattern": "", "path": "many"},
]
LS: list[dict[str, object]] = [{}, {"limit": 3}, {"limit": 0}, {"limit": 1e300}, {"path": "src"}, {"path": "empty"}]
READ: list[dict[str, object]] = [
    {"path": "many"},
    {"path": "many", "offset": 3},
    {"path": "many", "offset": 3, "limit": 4},
    {"path": "many", "offset": 0},
    {"path": "many", "offset": -2},
    {"path": "many", "limit": 0},
    {"path": "many", "offset": 21},
    {"path": "many", "offset": 22},
    {"path": "full"},
    {"path": "long"},
    {"path": "utf16"},
]


def both(workspace: Path) -> dict[str, object]:
    return {"cwd": str(workspace), "root": str(workspace)}


@pytest.fixture
def filled(workspace: Path) -> Path:
    (workspace / "src/deep").mkdir(parents=True)
    (workspace / "empty").mkdir()
    contents = {
        "src/a.ts": b"a needle\nno\na needle again\n",
        "src/deep/b.md": b"b\nneedle\nb\n",
        "-dash": b"needle",
        "Upper": b"a.b aXb",
        ".hidden": b"needle",
        "ignored.log": b"needle",
        ".gitignore": b"*.log",
        "binary": b"needle one\nbin\0ary needle\nneedle three\n",
        "bom": b"\xef\xbb\xbfneedle\nneedle two\n",
        "utf16": "needle ä\nneedle two\n".encode("utf-16"),
        "crlf": b"needle\r\nother\r\nneedle",
        "latin1": b"needle \xff\xfe\n",
        "long": b"needle " + b"x" * 5000 + b" end\nneedle " + b"y" * 489 + b"\nneedle " + b"z" * 494 + b"\n",
        "wide": ("needle " + "\U0001f600" * 300 + "\nneedle" + "\U0001f600" * 300 + "\n").encode(),
        "many": b"".join(b"line %d\n" % number for number in range(20)),
        "full": b"".join(b"x" * 200 + b"\n" for _ in range(400)),
        "name [1] ü": b"needle",
    }
    for name, content in contents.items():
        (workspace / name).write_bytes(content)
    return workspace


@pytest.mark.parametrize("root", [True, False])
def test_a_result_is_the_one_of_pi(runtime: Runtime, filled: Path, tmp_path: Path, *, root: bool) -> None:
    cases = [("grep", one) for one in GREP] + [("ls", one) for one in LS] + [("read", one) for one in READ]
    given = {"cwd": str(filled), "root": str(filled) if root else None, "cases": cases}

    answers = run_in_node(runtime, tmp_path, BOTH, given)

    for case, (ours, pis) in zip(cases, answers, strict=True):
        # Ripgrep's threads find files in any order.
        assert sorted(ours.split("\n")) == sorted(pis.split("\n")), case


ODD_RANGES: list[tuple[dict[str, float], list[str]]] = [
    ({"offset": 2.5}, ["two", "three", ""]),
    ({"offset": 2.5, "limit": 1}, ["two"]),
    ({"offset": 2.5, "limit": 1.5}, ["two", "three"]),
    ({"offset": 0.5, "limit": 0.5}, []),
    ({"limit": -1}, ["one", "two", "three"]),
    ({"limit": -1.5}, ["one", "two", "three"]),
    ({"limit": -4}, []),
    ({"limit": -1e300}, []),
    ({"offset": 2, "limit": -2}, ["two", "three"]),
    ({"offset": 3, "limit": -1}, []),
]


def test_an_odd_range_selects_what_slicing_would(runtime: Runtime, workspace: Path, tmp_path: Path) -> None:
    (workspace / "file").write_text("one\ntwo\nthree\n")
    cases = [("read", {"path": "file", **given}) for given, _ in ODD_RANGES]

    answers = run_in_node(runtime, tmp_path, BOTH, {**both(workspace), "cases": cases})

    for (said, _), (given, lines) in zip(answers, ODD_RANGES, strict=True):
        shown = said.split("\n\n[")[0] if "more lines in file" in said else said
        assert shown.split("\n") == (lines or [""]), given


def test_a_repository_is_searched_as_pi_does(runtime: Runtime, filled: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", filled], check=True)
    cases = [("grep", {"pattern": "needle"})]

    [[ours, pis]] = run_in_node(runtime, tmp_path, BOTH, {**both(filled), "cases": cases})

    assert sorted(ours.split("\n")) == sorted(pis.split("\n"))
