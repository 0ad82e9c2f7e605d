"""The one error of this package. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_session_mcp.config.rules import Rule
    from pi_session_mcp.errors import ConfigCode


class ConfigError(Exception):
    """The configuration is refused.

    `rule` is a sentence of our own table. The place is either `pointer` (RFC 6901; "" is the whole file), or `line` and
    `column` if the text is no JSON. Both count from 1, columns in characters. Nothing else of the file is kept, and the
    error has no cause: the error of a parser holds the whole text.
    """

    def __init__(
        self,
        code: ConfigCode,
        rule: Rule,
        *,
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.code = code
        self.rule = str(rule)
        self.line = line
        self.column = column
        self.pointer = "" if pointer is None and line is None else pointer
        super().__init__(code, rule)

    def __str__(self) -> str:
        return f"{self.code} at {self.place}: {self.rule}"

    @property
    def place(self) -> str:
        """The place in words."""
        if self.line is not None:
            return f"line {self.line}, column {self.column}"
        return self.pointer or "the file"

    def to_report(self) -> dict[str, str | int]:
        """Plain fields for a JSON report: `code`, then `pointer` or `line` and `column`, then `rule`."""
        place = {"pointer": self.pointer, "line": self.line, "column": self.column}
        known = {name: value for name, value in place.items() if value is not None}
        return {"code": self.code.value, **known, "rule": self.rule}
