"""What is published: what is in it, and that it works where no checkout is.

The plain run has the wheel's requirements and the runtime by links; `-m matrix` installs them, as `-m release` does
with other Pythons and Nodes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

import pi_session_mcp
from tests.packaging.releases import AWKWARD, LIMIT_S, ROOT, Installed, Published, pip, publish, run
from tests.process.conftest import environment_below
from tests.support.environment import ensure_installed
from tests.support.lasting import needs_a_lasting_checkout
from tests.support.linked_environment import link_runtime, make_linked_environment
from tests.support.stub_client import install_stub_clients

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(600)  # a runtime is tens of thousands of files to write, and to remove

ONLY_FOR_DEVELOPMENT: Final = frozenset({"sdk.d.ts", "tsconfig.json"})
NEEDED: Final = (
    "pi_session_mcp/config/schema.json",
    "pi_session_mcp/doctor/checks.py",
    "pi_session_mcp/host/js/host.mjs",
    "pi_session_mcp/keeper/program.py",
    "pi_session_mcp/platform/processes.py",
    "pi_session_mcp/py.typed",
    "pi_session_mcp/runtime/lock/package-lock.json",
    "pi_session_mcp/runtime/lock/package.json",
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A release."""
    return publish(tmp_path_factory.mktemp("release"))


@contextmanager
def place_for_an_environment() -> Iterator[Path]:
    """A directory with a home, in a place with spaces and more than ASCII.

    It lies in the checkout's directory for what is built, since setup registers nothing below one for temporary files.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="packaging-", dir=ROOT / "build") as made:
        root = Path(made) / AWKWARD
        (root / "home").mkdir(parents=True)
        yield root


def install(python: Path, *words: str) -> None:
    pip(sys.executable, "--python", str(python), "install", "--quiet", "--no-compile", *words)


@pytest.fixture(scope="module")
def installed(published: Published) -> Iterator[Installed]:
    """The wheel in an environment with nothing but what it requires."""
    with place_for_an_environment() as root:
        python = make_linked_environment(root / "env", published.wheel, "node")
        install(python, "--no-deps", "--no-index", str(published.wheel))
        yield Installed(root / "env" / "bin" / "pi-session-mcp", root / "home")


def test_the_wheel_holds_the_package_the_manual_page_and_nothing_else(published: Published) -> None:
    with zipfile.ZipFile(published.wheel) as wheel:
        names = wheel.namelist()
    package = {name for name in names if name.startswith("pi_session_mcp/")}

    assert package == {
        name for name in _of_the_project("pi_session_mcp") if Path(name).name not in ONLY_FOR_DEVELOPMENT
    }
    assert package.issuperset(NEEDED)
    release = f"pi_session_mcp-{pi_session_mcp.__version__}"
    assert {name for name in names if name.startswith(f"{release}.data/")} == {
        f"{release}.data/data/share/man/man1/pi-session-mcp.1"
    }
    assert {name.split("/", 1)[0] for name in names} == {"pi_session_mcp", f"{release}.data", f"{release}.dist-info"}


def test_the_wheel_brings_one_command_and_its_license(published: Published) -> None:
    information = f"pi_session_mcp-{pi_session_mcp.__version__}.dist-info"
    with zipfile.ZipFile(published.wheel) as wheel:
        commands = wheel.read(f"{information}/entry_points.txt").decode()
        names = wheel.namelist()

    assert commands.split() == ["[console_scripts]", "pi-session-mcp", "=", "pi_session_mcp.__main__:main"]
    assert f"{information}/licenses/LICENSE" in names


def test_the_sdist_holds_what_git_does_not_ignore_and_all_that_the_tests_need(published: Published) -> None:
    with tarfile.open(published.sdist) as sdist:
        members = sdist.getmembers()
    names = {member.name.split("/", 1)[1] for member in members}

    assert names - {"PKG-INFO"} <= set(_of_the_project("."))
    assert names.issuperset(
        {
            *NEEDED,
            *_of_the_project("pi_session_mcp"),
            *_of_the_project("completions"),
            *_of_the_project("man"),
            *_of_the_project("tests"),
        }
    )
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= names
    assert all(member.isreg() for member in members)


def test_the_installed_program_says_its_version_and_its_schema(installed: Installed) -> None:
    version = installed.run("--version")
    schema = installed.run("config", "schema")

    assert (version.returncode, version.stdout) == (0, f"pi-session-mcp {pi_session_mcp.__version__}\n")
    assert json.loads(schema.stdout)["title"] == "pi-session-mcp configuration"


def test_a_first_line_that_pipx_has_changed_is_no_change_of_the_package(installed: Installed) -> None:
    script = installed.program.read_text()
    first, rest = script.split("\n", 1)
    try:
        installed.program.write_text(f"{first} -E\n{rest}")  # pipx 1.18
        checks = {check["id"]: check["severity"] for check in installed.report("doctor")["checks"]}
    finally:
        installed.program.write_text(script)

    assert checks["package_modified"] == "ok"


def test_the_installed_program_knows_the_runtime_beside_itself_and_shows_the_main_job(installed: Installed) -> None:
    ensure_installed()
    before = installed.report("runtime", "status")
    link_runtime(installed.program.parents[1])
    made = installed.report("runtime", "install")
    demo = installed.report("demo")

    assert before["ok"] is False
    assert made["status"] == "already_installed"
    assert [step["name"] for step in demo["steps"] if not step["ok"]] == []
    assert demo["ok"] is True


@pytest.mark.matrix
def test_the_program_installed_with_its_requirements_puts_the_runtime_beside_itself(published: Published) -> None:
    with place_for_an_environment() as root:
        venv.create(root / "env", with_pip=False, symlinks=True)
        install(root / "env" / "bin" / "python", f"{published.wheel}[node]")
        installed = Installed(root / "env" / "bin" / "pi-session-mcp", root / "home")
        before = installed.report("runtime", "status")
        made = installed.report("runtime", "install")
        after = installed.report("runtime", "status")
        demo = installed.report("demo")

    assert before["ok"] is False
    assert made["status"] == "installed"
    assert after["status"] == "ok"
    assert [step["name"] for step in demo["steps"] if not step["ok"]] == []
    assert demo["ok"] is True


@needs_a_lasting_checkout
def test_the_installed_program_registers_itself_answers_a_client_and_is_removed(
    installed: Installed, tmp_path: Path
) -> None:
    ensure_installed()
    environ = environment_below(tmp_path)
    stub = install_stub_clients(tmp_path / "home", tmp_path / "clients", clients=("codex",))
    variables = {"PI_SESSION_MCP_CONFIG": environ["PI_SESSION_MCP_CONFIG"]}
    there = Installed(installed.program, stub.home, (stub.programs,), variables)

    applied, verified = (there.report("setup", operation, "codex:user") for operation in ("--apply", "--verify"))
    registered = tomllib.loads((stub.home / ".codex" / "config.toml").read_text())["mcp_servers"]["pi-session-mcp"]
    removed = there.report("setup", "--remove", "codex:user")

    codes = [finding["code"] for report in (applied, verified, removed) for finding in report["findings"]]
    assert codes == ["applied", "mcp_verified", "removed"]
    assert registered["command"] == str(installed.program)


@pytest.mark.matrix
@needs_a_lasting_checkout
def test_the_installed_program_does_the_nine_steps_of_setup(installed: Installed, tmp_path: Path) -> None:
    ensure_installed()
    install_stub_clients(tmp_path / "home", tmp_path / "clients")
    record = tmp_path / "record.json"
    what = ("codex:user", "--only", "setup", "--configuration", "plain", "--quick")
    where = ("--program", str(installed.program), "--clients", str(tmp_path / "clients"), "--json", str(record))

    ended = run([sys.executable, "-m", "acceptance", *what, *where], ROOT, {**os.environ, "TMPDIR": str(tmp_path)})

    assert ended.returncode == 0, ended.stderr
    (of_codex,) = json.loads(record.read_text())["runs"]
    passed = {check["id"] for check in of_codex["checks"] if check["passed"]}
    assert passed.issuperset({"registered_exactly", *(f"step_{number}" for number in range(1, 10))})


def _of_the_project(below: str) -> list[str]:
    """The files below a directory of the checkout that git does not ignore; elsewhere nothing can be compared with."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", below]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, check=False, timeout=LIMIT_S)
    if listed.returncode:
        pytest.skip("this is no git checkout, so there is no list of what belongs to the project")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [name for name in names if (ROOT / name).is_file()]
