"""Paths as text in any locale: the same bytes go to the operating system, and the same text to Node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from pi_session_mcp.platform.text import path_text, utf8_text

ASCII: Final = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": os.environ["PATH"]}
SEES: Final = """
import sys
from pathlib import Path
from pi_session_mcp.platform.files import look_at_directory
from pi_session_mcp.platform.text import path_text, utf8_text

path = Path(sys.argv[1]) / path_text("caf\\u00e9")
print(ascii(look_at_directory(path).value), ascii(utf8_text(path.name)))
"""


def test_a_directory_with_an_accent_is_found_in_a_locale_that_has_none(tmp_path: Path) -> None:
    (tmp_path / "café").mkdir()

    seen = [
        subprocess.run(
            [sys.executable, "-c", SEES, tmp_path], env=variables, capture_output=True, text=True, check=True
        ).stdout
        for variables in (ASCII, {**os.environ, "PYTHONUTF8": "1"})
    ]

    assert seen == ["'writable' 'caf\\xe9'\n"] * 2


@pytest.mark.skipif(sys.getfilesystemencoding() != "utf-8", reason="says what holds in a UTF-8 locale")
def test_in_a_utf_8_locale_text_and_paths_are_the_same() -> None:
    assert path_text("/grüße/🦉") == "/grüße/🦉"
    assert utf8_text(Path("/grüße/🦉")) == "/grüße/🦉"


def test_bytes_that_are_not_utf_8_have_no_text() -> None:
    assert utf8_text(Path(os.fsdecode(b"/odd-\xff"))) is None
