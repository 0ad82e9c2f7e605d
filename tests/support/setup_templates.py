"""What the tests of setup start from: a driver that has all its imports, and worlds that are copied, not made again.

`python -m tests.support.setup_templates` is that driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tests.support import setup_driver
from tests.support.setup_worlds import Driver, Operator, fresh_copy

if TYPE_CHECKING:
    from pathlib import Path

LATE: Final = ("anyio._backends._asyncio", "pydantic_settings", "pi_session_mcp.config.operator_environment")


class WarmDriver(Driver):
    """A driver whose children need not import what a run imports late, either."""

    def __init__(self) -> None:
        super().__init__("tests.support.setup_templates")


@dataclass(frozen=True, slots=True)
class Templates:
    """Worlds to start from: nothing is registered, or the first installation is. `root` is where they are used."""

    driver: Driver
    root: Path
    clean: Path
    applied: Path

    def operator(self, *, applied: bool) -> Operator:
        """Somebody in a world as if nothing, or one apply, had happened to it."""
        fresh_copy(self.applied if applied else self.clean, self.root)
        # The stubs' words are on the disk already; making them anew writes the same.
        before = (self.root / "home" / ".claude.json").read_text()
        operator = Operator(self.root, self.driver)
        operator.claude_file.write_text(before)
        return operator


def make_templates(base: Path, driver: Driver) -> Templates:
    """Both worlds, below `base`."""
    made = Templates(driver, base / "world", base / "clean", base / "applied")
    made.root.mkdir(mode=0o700)
    operator = Operator(made.root, driver)
    fresh_copy(made.root, made.clean)
    assert operator.code("apply") == "applied"
    fresh_copy(made.root, made.applied)
    return made


def main() -> None:
    """Import what a run imports late, and be the driver."""
    for name in LATE:
        import_module(name)
    setup_driver.main()


if __name__ == "__main__":
    main()
