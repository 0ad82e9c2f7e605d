"""The recorded answers of real clients, with the paths of our choice in the place of the placeholders."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pi_session_mcp.setup.clients.base import ClientOutput
from pi_session_mcp.setup.registration import registration_of

DIRECTORY: Final = Path(__file__).parents[3] / "recordings" / "clients"


@dataclass(frozen=True, slots=True)
class Paths:
    """What stands for our executable and our configuration."""

    executable: str
    configuration: str


PLACEHOLDERS: Final = Paths("<EXECUTABLE>", "<CONFIG>")
INTENT: Final = registration_of(PLACEHOLDERS.executable, PLACEHOLDERS.configuration)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call of one version."""

    version: str
    label: str
    arguments: tuple[str, ...]
    output: ClientOutput

    def __str__(self) -> str:
        return f"{self.version}-{self.label}"

    def at(self, paths: Paths) -> ClientOutput:
        """The output as it would have been with these paths."""
        texts = [
            stream.decode().replace("<EXECUTABLE>", paths.executable).replace("<CONFIG>", paths.configuration)
            for stream in (self.output.stdout, self.output.stderr)
        ]
        return ClientOutput(self.output.exit_code, texts[0].encode(), texts[1].encode())


def recorded(client: str) -> list[Recorded]:
    """Every recorded call of `client`, in all its versions."""
    found = []
    for file in sorted(DIRECTORY.rglob(f"{client}-*.json")):
        document = json.loads(file.read_text("utf-8"))
        for call in document["calls"]:
            output = ClientOutput(call["exitCode"], call["stdout"].encode(), call["stderr"].encode())
            label = re.match(r"\[(.+?)\]", call["note"])
            assert label, call["note"]
            found.append(Recorded(document["version"], label[1], tuple(call["args"]), output))
    return found


def gets(client: str) -> list[Recorded]:
    """Every recorded question about one name, but for those about the question itself."""
    return [
        call for call in recorded(client) if call.arguments[:2] == ("mcp", "get") and "--help" not in call.arguments
    ]
