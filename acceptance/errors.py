"""What ends an acceptance run before its verdict."""

from __future__ import annotations


class HarnessError(Exception):
    """The harness itself could not do its work; it says nothing about the product. The text is for people."""


class Interrupted(BaseException):
    """A signal asked us to end. Not an `Exception`: only cleanups may see it on its way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number
