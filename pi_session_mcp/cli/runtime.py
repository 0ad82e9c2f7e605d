"""placeholder"""

from __future__ import annotations

from typing import Final

import typer

HELP: Final = """Install the pinned Pi SDK, or look for it.

\b
Example:
  pi-session-mcp runtime status
"""


def group(app: typer.Typer) -> typer.Typer:
    @app.command("status")
    def status() -> None: ...
    @app.command("install")
    def install() -> None: ...

    return app
