"""The documents' check finds what it is there to find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "check_docs.py"


def faults(root: Path) -> tuple[int, str]:
    """The exit code and the output of the check in `root`."""
    ended = subprocess.run(
        [sys.executable, str(TOOL)], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](absent.md)", "absent.md leads nowhere"),
        ("[x](../outside.md)", "../outside.md leads nowhere"),
        ("[x](README.md#absent)", "names no heading"),
        ("```sh\nnever closed", "README.md:1: a code fence is never closed"),
        ("```mermaid\nnonsense\n```", "no kind of diagram"),
        ("It is " + "simp" + "ly so.", "write nothing"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "README.md").write_text(text)

    code, output = faults(tmp_path)

    assert code == 1
    assert said in output


def test_good_documents_pass(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a b.md").write_text("# A title, with `code`\n\n[up](../README.md)\n")
    (tmp_path / "README.md").write_text(
        "[a](docs/a%20b.md#a-title-with-code) [b](https://example.org/absent)\n\n"
        "```text\n[not a link](absent.md)\n```\n\n```mermaid\n\nsequenceDiagram\n```\n"
    )

    assert faults(tmp_path) == (0, "2 documents, 0 faults\n")


def test_no_document_at_all_is_a_fault(tmp_path: Path) -> None:
    assert faults(tmp_path)[0] == 1
