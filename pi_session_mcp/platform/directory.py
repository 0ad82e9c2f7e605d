"""What can be at the path of a workspace. Pure."""

from __future__ import annotations

from enum import StrEnum


class Directory(StrEnum):
    """What is at a workspace's path, for this user."""

    UNSEEN = "unseen"
    MISSING = "missing"
    NOT_DIRECTORY = "not_directory"
    UNREADABLE = "unreadable"
    UNNAMEABLE = "unnameable"
    """Its path is not UTF-8, so we cannot name it to other programs."""
    READ_ONLY = "read_only"
    WRITABLE = "writable"

    @property
    def is_usable(self) -> bool:
        """Whether a session can work there. Writing there may still be impossible."""
        return self in {Directory.READ_ONLY, Directory.WRITABLE}
