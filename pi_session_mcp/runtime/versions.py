"""The versions of Node and the Pi SDK that are pinned, tested and refused. Pure."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, int, int]

SDK_NAME: Final = "@earendil-works/pi-coding-agent"
SDK_PIN: Final = "1.6.0"
"""The version that `runtime install` installs and the tests use."""
SDK_TESTED_FROM: Final[Version] = (1, 5, 2)
"""In earlier versions an abort ends a turn in another way."""
SDK_TESTED_BELOW: Final[Version] = (1, 7, 0)
NODE_MINIMUM: Final[Version] = (22, 19, 0)
"""The version that the SDK's `engines` asks for."""

_RELEASE: Final = re.compile(r"v?(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})", re.ASCII)


def parse_release(text: str) -> Version | None:
    """A release such as `1.6.0` or `v24.19.0`. `None` for pre-releases, builds and everything else."""
    found = _RELEASE.fullmatch(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def sdk_is_tested(text: str) -> bool:
    """Whether this version of the Pi SDK is a tested one."""
    version = parse_release(text)
    return version is not None and SDK_TESTED_FROM <= version < SDK_TESTED_BELOW


def node_is_supported(text: str) -> bool:
    """Whether this version of Node can run the Pi SDK."""
    version = parse_release(text)
    return version is not None and version >= NODE_MINIMUM


def release_text(text: str) -> str | None:
    """`text` without a leading `v` if it is a release, else `None`: the output of a program is foreign text."""
    version = parse_release(text)
    return None if version is None else ".".join(map(str, version))
