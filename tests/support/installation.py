"""An installation made of small files, in which nothing is wrong until a test breaks it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from pi_session_mcp.doctor import installation
from pi_session_mcp.doctor.checks import examine
from pi_session_mcp.doctor.subject import Severity
from tests.support.environment import ensure_installed
from tests.support.extensions import install_package
from tests.support.pi_answers import WELL, answers
from tests.support.powers import without_powers
from tests.support.runtimes import NODE_VERSION, installed, place_in_environment, program

if TYPE_CHECKING:
    from pathlib import Path

    from pi_session_mcp.doctor.report import Report
    from pi_session_mcp.doctor.subject import Check

METADATA = "Metadata-Version: 2.4\nName: pi-session-mcp\nVersion: 0.1.0\nRequires-Python: >=3.11\n\nText: not a field\n"


def write_metadata(root: Path, text: str = METADATA) -> Path:
    """A `dist-info` for the package below `root`, with a `RECORD` of its present files."""
    information = root / "pi_session_mcp-0.1.0.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text(text)
    files = sorted(path for path in (root / "pi_session_mcp").rglob("*") if path.is_file() and path.suffix != ".pyc")
    rows = [f"{path.relative_to(root)},sha256={_hash(path)},{path.stat().st_size}" for path in files]
    (information / "RECORD").write_text("\n".join([*rows, f"{information.name}/RECORD,,"]) + "\n")
    return information


def _hash(path: Path) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()


class Installation:
    """A home, a Python environment with the runtime, a package, Pi's files, a configuration and a workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = self._directory("home")
        self.cwd = self._directory("cwd")
        self.prefix = self._directory("prefix")
        self.workspace = self._directory("code")
        self.machine_root = self._directory("root")
        self.agent_directory = self._directory("home/.pi/agent")
        self.package = self._directory("site")
        self.config = self._directory("etc") / "config.json"
        self.platform = sys.platform
        self.environ = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "PI_SESSION_MCP_CONFIG": str(self.config)}
        self.answers = self._directory("opt") / "answers"
        self.say(answers(WELL))
        self.node = self.node_program()
        self.runtime = installed(place_in_environment(self.prefix), self.node)
        self._directory("site/pi_session_mcp")
        (self.package / "pi_session_mcp" / "__init__.py").write_text("")
        write_metadata(self.package)
        (self.agent_directory / "models.json").write_text('{"providers": {}}')
        (self.agent_directory / "auth.json").write_text("{}")
        self.extension = install_package(self.agent_directory)
        self.said: dict[str, Any] = {
            "workspaces": {"main": str(self.workspace)},
            "executionProfiles": {
                "reader": self._profile("read-only", default=True),
                "coder": self._profile("coding", default=False),
            },
        }
        self.configure()

    def configure(self, **sections: Any) -> None:
        """Write the configuration, with these sections instead."""
        self.config.write_text(json.dumps({**self.said, **sections}))

    def say(self, answers: str) -> None:
        """Have Pi say this of its files and of the profiles."""
        self.answers.write_text(answers)

    def node_program(self, path: Path | None = None, version: str = NODE_VERSION) -> Path:
        """A Node that says its version, and what Pi says."""
        # Without `cat`, which some PATH of a test does not lead to.
        read = f'while IFS= read -r line; do printf "%s\\n" "$line"; done < {shlex.quote(str(self.answers))}'
        script = f'if [ "$1" = --version ]; then echo {version}; else {read}; fi'
        return program(path or self.root / "opt" / "node", script)

    def use_a_real_node(self) -> None:
        """Have the files in the agent directory judged; the SDK of this installation knows everything."""
        real = shlex.quote(str(ensure_installed().node))
        program(self.node, f'[ "$1" = --version ] && exec echo {NODE_VERSION}\nexec {real} "$@"')

    def record_runtime_again(self) -> None:
        """What `runtime install` leaves."""
        self.runtime = installed(place_in_environment(self.prefix), self.node)

    def report(self) -> Report:
        """What the doctor says now, to a user whom permissions hold back."""
        return without_powers(partial(examine, self.examined()), self.environ)

    def examined(self) -> installation.Installation:
        """This installation as the doctor looks at it, once."""
        places = (self.cwd, self.prefix, self.package, self.platform, self.machine_root)
        return installation.Installation(self.environ, *places)

    def findings(self) -> list[Check]:
        """What is wrong now."""
        return [check for check in self.report().checks if check.severity is not Severity.OK]

    def open_everything(self) -> None:
        """Give back the permissions that a test took, so that its directory can be removed."""
        for path, _directories, _files in os.walk(self.root):
            os.chmod(path, 0o755)

    def _directory(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True)
        return path

    @staticmethod
    def _profile(permission: str, *, default: bool) -> dict[str, Any]:
        chosen = {"provider": "p", "model": "m", "thinkingLevel": "off", "extensions": ["npm:ext@1.0.0"]}
        return {"default": default, "permissionProfile": permission, **chosen}
