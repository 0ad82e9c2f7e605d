"""The doctor as a process: harmless, offline, hard to kill, and silent about everything that is nobody's business.

What depends on the start of the program, its streams and its signals is tried with `command=DOCTOR`, the rest in a
child that has the imports already.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import psutil
import pytest

import pi_session_mcp
from pi_session_mcp.doctor.pi import SCRIPT as JUDGE
from tests.support.environment import ensure_installed
from tests.support.installation import write_metadata
from tests.support.powers import give_up_powers
from tests.support.runtimes import sdk
from tests.support.trees import survivors
from tests.support.warm_program import Said, WarmProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DOCTOR: Final = (sys.executable, "-m", "pi_session_mcp", "doctor")
SCHEMA: Final = json.loads((Path(__file__).parents[2] / "docs" / "doctor.schema.json").read_text())
VALIDATOR: Final = jsonschema.Draft202012Validator(SCHEMA)
CANARY: Final = "CANARY"
PROVIDER: Final = {
    "baseUrl": "http://127.0.0.1:9/v1",
    "api": "openai-completions",
    "apiKey": "k",
    "models": [{"id": "m"}],
}
LIMIT_S: Final = 60
GUARDED: Final = ("--permission", "--allow-fs-read=*")


class Ended(Said):
    """What a doctor said and how it ended."""

    @property
    def report(self) -> dict[str, Any]:
        """The one object on standard output."""
        assert self.out.count("\n") == 1
        report: dict[str, Any] = json.loads(self.out)
        VALIDATOR.validate(report)
        assert report["exitCode"] == self.code
        return report

    @property
    def found(self) -> set[str]:
        """Ids of what is wrong."""
        return {check["id"] for check in self.report["checks"] if check["severity"] != "ok"}


@dataclass
class Operator:
    """Somebody with a configuration, Pi's files and a workspace.

    The configuration names `sdk`: a small one, which takes a tenth of the time. `None` is the installed one.
    """

    root: Path
    warm: WarmProgram
    sdk: Path | None
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home/.pi/agent", "code", "etc", "cwd"):
            (self.root / name).mkdir(parents=True)
        self.environ |= {"HOME": str(self.root / "home"), "PATH": os.environ["PATH"]}
        self.environ["PI_SESSION_MCP_CONFIG"] = str(self.config)
        self.agent_directory = self.root / "home" / ".pi" / "agent"
        (self.agent_directory / "models.json").write_text(json.dumps({"providers": {"p": PROVIDER}}))
        self.configure()

    @property
    def config(self) -> Path:
        """The configuration's file."""
        return self.root / "etc" / "config.json"

    def configure(self, **sections: Any) -> None:
        """Write a configuration with a reading and a coding profile."""
        chosen = {"provider": "p", "model": "m", "thinkingLevel": "off"}
        profiles = {
            "reader": {"default": True, "permissionProfile": "read-only", **chosen},
            "coder": {"default": False, "permissionProfile": "coding", **chosen},
        }
        runtime = {} if self.sdk is None else {"runtime": {"sdk": str(self.sdk)}}
        said = {"workspaces": {"main": str(self.root / "code")}, "executionProfiles": profiles, **runtime, **sections}
        self.config.write_text(json.dumps(said))

    def run(self, *arguments: str, command: Sequence[str] = (), cwd: Path | None = None) -> Ended:
        """Run the doctor to its end, as a user whom permissions hold back; with `command`, as that process."""
        if not command:
            said = self.warm.run(["doctor", *arguments], self.environ, cwd or self.root / "cwd", weak=True)
            return Ended(said.code, said.out, said.err)
        ended = subprocess.run(
            [*command, *arguments],
            env=self.environ,
            cwd=cwd or self.root / "cwd",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
            preexec_fn=give_up_powers,
        )
        return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def files(self) -> dict[str, tuple[int, int]]:
        """Everything below the root, with inode and time of modification."""
        return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in self.root.rglob("*")}


@pytest.fixture(scope="module", autouse=True)
def runtime() -> None:
    """The runtime that `make setup` installs."""
    ensure_installed()


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProgram]:
    with WarmProgram() as warm:
        yield warm


@pytest.fixture(scope="module")
def small_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Says what an SDK for which all is well says."""
    return sdk(tmp_path_factory.mktemp("sdk") / "sdk")


@pytest.fixture
def operator(tmp_path: Path, warm: WarmProgram, small_sdk: Path) -> Iterator[Operator]:
    """An operator for whom all is well."""
    yield Operator(tmp_path, warm, small_sdk)
    open_all(tmp_path)


@pytest.fixture
def usual_operator(tmp_path: Path, warm: WarmProgram) -> Iterator[Operator]:
    """The same, with the installed SDK."""
    yield Operator(tmp_path, warm, None)
    open_all(tmp_path)


def open_all(tmp_path: Path) -> None:
    """Give back the permissions that a test took, so that its directory can be removed."""
    for path in (tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir() and not path.is_symlink())):
        path.chmod(0o755)


def test_all_is_well_and_no_file_is_changed_or_made(usual_operator: Operator) -> None:
    operator = usual_operator
    before = operator.files()

    told, reported = operator.run(command=DOCTOR), operator.run("--json", command=DOCTOR)

    assert operator.files() == before
    assert reported.found == set()
    assert (told.code, told.err, reported.code, reported.err) == (0, "", 0, "")
    assert told.out.splitlines()[-1].endswith("Nothing is wrong. Next: pi-session-mcp setup")
    assert operator.run("--json").out == reported.out


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
_CALLS: Final = "trace=%network,%file,execve"
_CHANGES: Final = re.compile(
    r"\b(open|openat|openat2)\(.*\b(O_WRONLY|O_RDWR|O_CREAT)\b"
    r"|\b(creat|mkdir\w*|mknod\w*|rename\w*|link|linkat|symlink\w*|unlink\w*|rmdir|truncate|ch(mod|own)\w*|utime\w*)\("
)
_NETWORK: Final = re.compile(r"\b(socket|socketpair|connect|bind|listen|accept4?|sendto|sendmsg)\(")


@needs_strace
def test_traced_it_opens_no_socket_writes_no_file_and_runs_nothing_but_node(usual_operator: Operator) -> None:
    operator = usual_operator
    trace = operator.root / "trace"
    operator.run("--json", command=DOCTOR)  # what Python itself compiles and keeps has been kept by now

    ended = operator.run(
        "--json", command=["strace", "-f", "-qq", "-s", "4096", "-e", _CALLS, "-o", str(trace), *DOCTOR]
    )

    calls = [line for line in trace.read_text().splitlines() if not re.search(r"= -1 E\w+", line)]
    programs = [re.findall(r'"([^"]*)"', line.split("[", 1)[1].split("]")[0]) for line in calls if "execve(" in line]
    assert ended.code == 0
    node = programs[1][0]
    assert programs == [[*DOCTOR, "--json"], [node, "--version"], [node, *GUARDED, str(JUDGE)]]
    assert Path(node).name == "node"
    assert [line for line in calls if _NETWORK.search(line)] == []
    assert [line for line in calls if _CHANGES.search(line) and '"/dev/null"' not in line] == []


def _can_cut_off_the_network() -> bool:
    program = shutil.which("unshare")
    return (
        program is not None
        and subprocess.run([program, "-rn", "true"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not _can_cut_off_the_network(), reason="needs a network namespace of its own")
def test_it_says_the_same_with_the_network_cut_off(usual_operator: Operator) -> None:
    operator = usual_operator
    assert operator.run("--json", command=["unshare", "-rn", *DOCTOR]).out == operator.run("--json").out


def _no_home(operator: Operator) -> None:
    operator.configure(piAgentDirectory=str(operator.agent_directory))
    del operator.environ["HOME"]


def _empty_home(operator: Operator) -> None:
    operator.configure(piAgentDirectory=str(operator.agent_directory))
    operator.environ["HOME"] = ""


def _read_only_home(operator: Operator) -> None:
    (operator.root / "home").chmod(0o555)


def _closed_home(operator: Operator) -> None:
    (operator.root / "home").chmod(0)


def _home_that_is_a_file(operator: Operator) -> None:
    operator.environ["HOME"] = str(operator.config)


def _closed_directory_above_the_workspace(operator: Operator) -> None:
    (operator.root / "code" / "inner").mkdir()
    operator.configure(workspaces={"main": "../code/inner"})
    (operator.root / "code").chmod(0)


def _dangling_workspace(operator: Operator) -> None:
    (operator.root / "code").rmdir()
    (operator.root / "code").symlink_to("nowhere")


def _fifo_for_a_workspace(operator: Operator) -> None:
    (operator.root / "code").rmdir()
    os.mkfifo(operator.root / "code")


def _workspace_of_endless_name(operator: Operator) -> None:
    operator.configure(workspaces={"main": "x" * 100_000})


def _two_mebibytes(operator: Operator) -> None:
    operator.config.write_text("[" * 2 * 1024 * 1024)


def _nested_brackets(operator: Operator) -> None:
    operator.config.write_text("[" * 1_000_000)


def _configuration_that_is_no_text(operator: Operator) -> None:
    operator.config.write_bytes(bytes(range(256)))


def _name_that_is_no_text(operator: Operator) -> None:
    operator.environ["PI_SESSION_MCP_CONFIG"] = os.fsdecode(b"/\xff\xfe")


def _no_path(operator: Operator) -> None:
    del operator.environ["PATH"]


SURVIVED: Final[dict[Callable[[Operator], None], set[str]]] = {
    _no_home: {"state_directory_unsupported"},
    _empty_home: {"state_directory_unsupported"},
    _read_only_home: {"state_directory_unsupported"},
    _closed_home: {"pi_configuration_invalid", "pi_agent_directory_not_writable", "state_directory_unsupported"},
    _home_that_is_a_file: {
        "pi_configuration_invalid",
        "pi_agent_directory_not_writable",
        "state_directory_unsupported",
    },
    _closed_directory_above_the_workspace: {"workspace_unreadable"},
    _dangling_workspace: {"workspace_missing"},
    _fifo_for_a_workspace: {"workspace_not_directory"},
    _workspace_of_endless_name: {"workspace_missing"},
    _two_mebibytes: {"config_invalid"},
    _nested_brackets: {"config_invalid"},
    _configuration_that_is_no_text: {"config_invalid"},
    _name_that_is_no_text: {"config_missing"},
    _no_path: set(),
}


@pytest.mark.parametrize("arrange", SURVIVED, ids=lambda arrange: arrange.__name__.strip("_"))
def test_it_survives(arrange: Callable[[Operator], None], operator: Operator) -> None:
    arrange(operator)

    ended = operator.run("--json")

    assert (ended.found, ended.err) == (SURVIVED[arrange], "")


@pytest.mark.parametrize(
    "variables",
    [
        {
            "FORCE_COLOR": "3",
            "CLICOLOR_FORCE": "1",
            "TTY_COMPATIBLE": "1",
            "COLUMNS": "20",
            "PYTHONWARNINGS": "default",
            "PYTHONDEVMODE": "1",
        },
        {
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
            "NODE_OPTIONS": "--no-such-option",
            "TERM": "dumb",
        },
    ],
    ids="-".join,
)
def test_the_environment_changes_nothing_but_the_width(variables: dict[str, str], operator: Operator) -> None:
    operator.configure(workspaces={"main": "../absent"})
    plain = operator.run("--json")
    operator.environ |= variables

    told, reported = operator.run(command=DOCTOR), operator.run("--json", command=DOCTOR)

    assert (reported.out, reported.err, reported.code) == (plain.out, "", 2)
    assert (told.code, told.err) == (2, "")
    assert "\x1b" not in told.out
    if "COLUMNS" in variables:
        assert max(len(line) for line in told.out.splitlines()) <= 40


def test_it_survives_a_working_directory_that_was_deleted(operator: Operator) -> None:
    gone = operator.root / "gone"
    gone.mkdir()
    removed_first = "import os,sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"

    ended = operator.run("--json", command=[sys.executable, "-c", removed_first, *DOCTOR], cwd=gone)

    assert (ended.found, ended.err) == (set(), "")


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["told", "reported"])
def test_a_reader_that_leaves_at_once_gets_the_exit_code_and_no_stack_trace(
    form: tuple[str, ...], operator: Operator
) -> None:
    operator.config.unlink()
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [*DOCTOR, *form],
        env=operator.environ,
        cwd=operator.root,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=LIMIT_S,
        check=False,
    )
    os.close(writing)

    assert (ended.returncode, ended.stderr) == (2, b"")


@pytest.mark.parametrize("arguments", [("--frobnicate",), ("surplus",), ("--json", "surplus")], ids=" ".join)
def test_misuse_exits_with_64(arguments: tuple[str, ...], operator: Operator) -> None:
    ended = operator.run(*arguments)

    assert ended.code == 64
    if "--json" in arguments:
        assert ended.report["code"] == "usage"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation of this package in a directory of its own, with what Python has compiled of it so far."""
    site = tmp_path_factory.mktemp("site")
    source = Path(pi_session_mcp.__file__).parent
    shutil.copytree(source, site / "pi_session_mcp")
    write_metadata(site)
    return site


@pytest.mark.parametrize(
    ("missing", "also"),
    [
        *(pytest.param(part, set(), marks=pytest.mark.matrix) for part in ("bridge", "demo", "extensions")),
        pytest.param("host", {"pi_configuration_invalid"}, marks=pytest.mark.matrix),
        *(pytest.param(part, set(), marks=pytest.mark.matrix) for part in ("keeper", "sessions")),
        ("server", set()),
        ("setup", {"state_directory_unsupported"}),
        ("cli/program.py", set()),
        ("cli/runtime.py", set()),
        ("doctor/pi.py", {"pi_configuration_invalid"}),
        ("platform/brief_run.py", {"node_missing", "pi_runtime_missing", "search_tools_missing"}),
        ("platform/filesystem.py", {"state_directory_unsupported"}),
        ("config", {"config_unreadable"}),
        (
            "runtime",
            {
                "node_missing",
                "pi_runtime_missing",
                "search_tools_missing",
                "pi_agent_directory_ignored",
                "pi_configuration_invalid",
            },
        ),
    ],
)
def test_an_installation_with_a_part_missing_is_told_about(
    missing: str, also: set[str], copy: Path, operator: Operator, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    shutil.copytree(copy, site)
    gone = site / "pi_session_mcp" / missing
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    operator.environ |= {"PYTHONPATH": str(site)}

    told, reported = operator.run(command=DOCTOR), operator.run("--json", command=DOCTOR)

    assert reported.found == {"package_modified"} | also
    assert (told.err, reported.err) == ("", "")
    assert told.code == reported.code


def test_an_installation_without_metadata_is_told_about(copy: Path, operator: Operator, tmp_path: Path) -> None:
    shutil.copytree(copy / "pi_session_mcp", tmp_path / "site" / "pi_session_mcp")
    operator.environ |= {"PYTHONPATH": str(tmp_path / "site")}

    assert operator.run("--json", command=DOCTOR).found == {"package_metadata_unreadable"}


def test_an_untouched_copy_is_fine(copy: Path, operator: Operator, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(copy, site, ignore=shutil.ignore_patterns("__pycache__"))
    operator.environ |= {"PYTHONPATH": str(site)}

    assert operator.run("--json", command=DOCTOR).found == set()
    kept = {path.name.partition(".")[0] for path in site.rglob("*.pyc")}
    assert kept <= {"__init__", "__main__"}  # those two are compiled before the first line of ours runs


def _secrets_everywhere(operator: Operator) -> None:
    profile = {"default": True, "permissionProfile": "read-only", "provider": CANARY, "model": CANARY}
    server = {"command": f"/{CANARY}", "args": [CANARY], "envFrom": {"KEY": CANARY}, "tools": {}}
    server["tools"] = {"search": {"name": CANARY, "readOnly": True}}
    operator.configure(
        workspaces={"main": CANARY, "other": f"/{CANARY}"},
        executionProfiles={"reader": {**profile, "thinkingLevel": "off", "mcpServers": {"kb": server}}},
        piAgentDirectory=CANARY,
        runtime={"node": f"/{CANARY}/node", "sdk": f"/{CANARY}"},
    )


def _secret_key(operator: Operator) -> None:
    operator.configure(**{CANARY: 1})


def _secret_alias(operator: Operator) -> None:
    operator.configure(workspaces={f"{CANARY} alias": "x"})


def _secret_value(operator: Operator) -> None:
    operator.configure(limits=CANARY)


def _secret_syntax(operator: Operator) -> None:
    operator.config.write_text('{"CANARY": CANARY}')


def _secret_duplicate(operator: Operator) -> None:
    operator.config.write_text('{"CANARY": 1, "CANARY": 2}')


def _secret_of_pi(operator: Operator) -> None:
    (operator.agent_directory / "models.json").write_text('{"providers": {"x": {"apiKey": "CANARY",}}}')
    (operator.agent_directory / "auth.json").write_text('{"CANARY": "CANARY"')


def _secret_version(operator: Operator) -> None:
    node = operator.root / "node"
    node.write_text(f"#!/bin/sh\necho {CANARY}; echo {CANARY} >&2\n")
    node.chmod(0o755)
    package = operator.root / "sdk"
    package.mkdir()
    said = {"name": "@earendil-works/pi-coding-agent", "version": f"1.6.0-{CANARY}"}
    (package / "package.json").write_text(json.dumps(said))
    operator.configure(runtime={"node": str(node), "sdk": str(package)})


@pytest.mark.parametrize(
    "hide",
    [
        _secrets_everywhere,
        _secret_key,
        _secret_alias,
        _secret_value,
        _secret_syntax,
        _secret_duplicate,
        _secret_of_pi,
        _secret_version,
    ],
    ids=lambda hide: hide.__name__.strip("_"),
)
def test_nothing_of_the_operators_is_shown(
    hide: Callable[[Operator], None], tmp_path: Path, warm: WarmProgram, small_sdk: Path
) -> None:
    operator = Operator(tmp_path / CANARY, warm, small_sdk)
    operator.environ |= {CANARY: CANARY, "KNOWLEDGE_API_KEY": CANARY, "HTTPS_PROXY": f"http://{CANARY}"}
    hide(operator)

    told, reported = operator.run(), operator.run("--json")

    said = told.out + told.err + reported.out + reported.err
    assert reported.code != 0
    assert CANARY not in said
    assert str(tmp_path) not in said


def test_only_known_words_aliases_and_packages_are_in_a_report(operator: Operator) -> None:
    profile = {"permissionProfile": "read-only", "provider": "p", "model": "m", "thinkingLevel": "off"}
    pinned = {"default": True, **profile, "extensions": ["npm:@scope/ext@1.2.3"]}
    operator.configure(workspaces={"other": "../code"}, executionProfiles={"reader": pinned})

    subjects = {check["subject"] for check in operator.run("--json").report["checks"]}

    fixed = {
        "Python", "platform", "package metadata", "package files", "Node.js", "Pi runtime", "Pi configuration",
        "configuration", "search tools", "setup state", "PI_CODING_AGENT_DIR", "agent directory", "proxy",
        "variables", "temporary directory",
    }  # fmt: skip
    assert subjects == fixed | {"other", "reader", "reader:@scope/ext"}


@pytest.mark.parametrize(
    "written",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b", ", b",\r\n"),
    ],
    ids=["byte-order-mark", "crlf"],
)
def test_a_file_saved_by_a_windows_editor_is_the_same_file(
    written: Callable[[bytes], bytes], operator: Operator
) -> None:
    plain = operator.run("--json")
    operator.config.write_bytes(written(operator.config.read_bytes()))

    assert operator.run("--json").out == plain.out


def test_a_comment_is_refused_with_line_and_column_and_the_file_stays(operator: Operator) -> None:
    text = operator.config.read_text() + "\n// off\n"
    operator.config.write_text(text)

    (found,) = (check for check in operator.run("--json").report["checks"] if check["severity"] != "ok")

    assert (found["id"], found["line"], found["column"]) == ("config_invalid", 2, 1)
    assert operator.config.read_text() == text


def test_a_second_profile_of_the_same_name_cannot_turn_reading_into_coding(operator: Operator) -> None:
    said = json.loads(operator.config.read_text())
    reader, coder = (json.dumps(said["executionProfiles"][name]) for name in ("reader", "coder"))
    operator.config.write_text(
        f'{{"workspaces": {{}}, "executionProfiles": {{"reader": {reader}, "reader": {coder}}}}}'
    )

    ended = operator.run("--json")

    (found,) = (check for check in ended.report["checks"] if check["severity"] != "ok")
    assert (found["id"], found["pointer"], ended.code) == ("config_invalid", "/executionProfiles/reader", 2)


def test_an_interrupt_leaves_no_node_behind(operator: Operator) -> None:
    node = operator.root / "node"
    ready = operator.root / "ready"
    os.mkfifo(ready)
    node.write_text(f"#!/bin/sh\necho $$ > {ready}\nexec sleep 1000\n")
    node.chmod(0o755)
    operator.configure(runtime={"node": str(node)})

    with subprocess.Popen(
        [*DOCTOR, "--json"], env=operator.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as doctor:
        pid = int(ready.read_text())
        doctor.send_signal(signal.SIGINT)
        out, err = doctor.communicate(timeout=LIMIT_S)

    ended = Ended(doctor.returncode, out.decode(), err.decode())
    assert (ended.code, ended.report["code"], ended.err) == (130, "interrupted", "")
    with suppress(psutil.NoSuchProcess):
        assert survivors([psutil.Process(pid)]) == []
