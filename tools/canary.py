"""Runs contract tests with other versions of the Pi SDK than the pinned one, and compares names of tools and types.

`python tools/canary.py [--whole] [VERSION…]` tries each published version of the tested range, and the newest one.
Each gets a Python environment of its own, in a temporary directory, with its own runtime; the pin, the lock file and
the installed runtime stay as they are. Exits with 0 when every version of the range passed, 1 when one did not, and 2
when the registry could not be asked or there is nothing to test. A version outside of the range is only reported.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from pi_session_mcp.extensions.tools import _MCP_NAMES, BUILT_IN_TOOLS, ExtensionTool, first_conflict
from pi_session_mcp.runtime.probe import node_version
from pi_session_mcp.runtime.record import LOCK_FILES, Place, Record, sdk_directory, shipped_lock, write_record
from pi_session_mcp.runtime.toolchain import find_toolchain
from pi_session_mcp.runtime.versions import SDK_NAME, SDK_PIN, parse_release, sdk_is_tested

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pi_session_mcp.runtime.toolchain import Toolchain

ROOT: Final = Path(__file__).resolve().parents[1]
QUICK: Final = ("tests/contract/host",)
WHOLE: Final = ("tests/contract", "--ignore=tests/contract/test_runtime_install.py")
"""All but the tests of `runtime install`, which are about the pin."""
CANARY: Final = "CANARY_RUNTIME"
"""Says to the tests that the runtime of their environment is to be taken as it is."""
OFFERED_TO_NOBODY: Final = frozenset({"powershell"})
"""Built-in tools that no permission profile has: Pi has this one for Windows."""
INSTALL_WITHIN_S: Final = 900
TESTS_WITHIN_S: Final = 1800
ASK_WITHIN_S: Final = 120

_NAMES: Final = """
import { pathToFileURL } from "node:url";
const [, sdk, ...asked] = process.argv;
const core = (file) => import(pathToFileURL(`${sdk}/dist/core/${file}`).href);
const { allToolNames } = await core("tools/index.js");
const mcp = await core("mcp-servers.js");
const exported = Object.values(mcp).filter((value) => typeof value === "string");
const taken = [...exported, ...asked].filter((name) => mcp.isMcpToolName(name));
console.log(JSON.stringify({ builtIn: [...allToolNames], mcp: taken }));
"""
_GRANTED: Final = "mcp_docs_search"
_OF_A_SERVER: Final = "mcp__docs__search"
_TYPE_ERROR: Final = re.compile(r"(?m)^\S*sdk_types\.ts\((\d+),")
_CHECKED: Final = re.compile(r"export (?:const|type) (\w+)")
_COUNTS: Final = re.compile(r"(?m)^(?=.*\b(?:passed|failed|error|errors)\b).* in \d.*$")


class CanaryError(Exception):
    """Nothing can be said about any version."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of tools that a version of the SDK treats specially, as it says itself."""

    built_in: frozenset[str]
    mcp: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one version. `seen` is one line for a person."""

    version: str
    passed: bool
    seen: str

    @property
    def is_binding(self) -> bool:
        """Whether a failure is one of the canary's."""
        return sdk_is_tested(self.version)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the versions, and print a table."""
    options = _options().parse_args(arguments)
    try:
        toolchain = _toolchain()
        published = _published(toolchain)
        versions = chosen(published, options.versions)
        tests = WHOLE if options.whole else QUICK
        verdicts = [_try(version, toolchain, tests) for version in versions]
    except CanaryError as error:
        _say(f"The canary could not do its work: {error}")
        return 2
    print(table(verdicts))
    return int(any(verdict.is_binding and not verdict.passed for verdict in verdicts))


def chosen(published: Iterable[str], named: Sequence[str]) -> list[str]:
    """The releases to try, oldest first: those named, else the tested range and the newest one.

    Raises `CanaryError` when a named one is not published, and when no version of the range is.
    """
    ranked = sorted((version, text) for text in published if (version := parse_release(text)) is not None)
    releases = [text for _, text in ranked]
    unknown = [text for text in named if text not in releases]
    if unknown:
        message = f"no such release is published: {', '.join(unknown)}"
        raise CanaryError(message)
    in_range = [text for text in releases if sdk_is_tested(text)]
    if not in_range:
        raise CanaryError("no release of the tested range is published")
    return [text for text in releases if text in named] if named else list(dict.fromkeys([*in_range, releases[-1]]))


def differences(names: Names) -> list[str]:
    """What the SDK and we do not agree about; empty when we refuse to extensions exactly what it treats specially."""
    ours = frozenset(name for tools in BUILT_IN_TOOLS.values() for name in tools)
    return [
        *(f"its built-in tool {name} is unknown to us" for name in sorted(names.built_in - ours - OFFERED_TO_NOBODY)),
        *(f"our tool {name} is none of its own" for name in sorted(ours - names.built_in)),
        *(f"{name} is an MCP tool to it, and not refused" for name in sorted(names.mcp) if not _is_refused(name)),
        *(f"{name} is no MCP tool to it" for name in sorted({*_MCP_NAMES, _OF_A_SERVER} - names.mcp)),
        *(f"{name} is an MCP tool to it, although we grant it" for name in sorted({_GRANTED} & names.mcp)),
    ]


def type_differences(said: str, source: str, *, failed: bool) -> list[str]:
    """The names in `sdk_types.ts`, which is `source`, of what does not compile, by what the compiler said."""
    lines = source.splitlines()
    wrong = {int(number) for number in _TYPE_ERROR.findall(said)}
    names = [found[1] for number in sorted(wrong) if (found := _CHECKED.match(lines[number - 1])) is not None]
    if failed and not names:
        return ["its types could not be compared with sdk.d.ts"]
    return [f"its types differ from sdk.d.ts: {name}" for name in names]


def table(verdicts: Sequence[Verdict]) -> str:
    """One line for each version."""
    rows = [("Pi SDK", "range", "result", "seen")]
    rows += [(each.version, _place(each), "pass" if each.passed else "FAIL", each.seen) for each in verdicts]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join("  ".join([*(f"{row[i]:{widths[i]}}" for i in range(3)), row[3]]) for row in rows)


def _place(verdict: Verdict) -> str:
    if verdict.version == SDK_PIN:
        return "pinned"
    return "tested" if verdict.is_binding else "beyond"


def _is_refused(name: str) -> bool:
    return first_conflict([ExtensionTool(name, 0)], ()) is not None


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/canary.py", description="Contract tests with other Pi SDKs.")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="only these instead of the range and the newest")
    parser.add_argument("--whole", action="store_true", help="all contract tests instead of those of the Pi host")
    return parser


def _toolchain() -> Toolchain:
    toolchain = find_toolchain(os.environ, ())
    if toolchain is None or toolchain.npm is None:
        raise CanaryError("there is no Node with an npm")
    return toolchain


def _published(toolchain: Toolchain) -> list[str]:
    ended = _npm(toolchain, ROOT, "view", SDK_NAME, "versions", "--json", within_s=ASK_WITHIN_S)
    if ended.returncode:
        raise CanaryError("the npm registry did not say which versions are published")
    said = json.loads(ended.stdout)
    return [said] if isinstance(said, str) else [str(version) for version in said]


def _try(version: str, toolchain: Toolchain, tests: Sequence[str]) -> Verdict:
    # Tests look for the word "canary" in what Pi tells its model, and Pi tells where its documents are.
    with tempfile.TemporaryDirectory(prefix="other-sdk-") as made:
        root = Path(made)
        _say(f"{version}: installing")
        try:
            python, sdk = _environment(root, version, toolchain)
        except CanaryError as error:
            return Verdict(version, passed=False, seen=str(error))
        disagreed = [*_disagreements(toolchain, sdk), *_type_differences(toolchain, sdk, root)]
        _say(f"{version}: running {' '.join(tests)}")
        passed, counts = _test(python, tests)
        return Verdict(version, passed and not disagreed, "; ".join([counts, *disagreed]))


def _environment(root: Path, version: str, toolchain: Toolchain) -> tuple[Path, Path]:
    """A Python that has this checkout and all of our environment, but a runtime of its own; and the SDK in that."""
    prefix = root / "env"
    venv.create(prefix, with_pip=False, symlinks=True)
    python = prefix / "bin" / "python"
    _borrow_packages(prefix, version)
    place = Place(prefix / "share" / "pi-session-mcp", prefix)
    lock, install = _installed(place, version, toolchain)
    node = _version_of(toolchain)
    write_record(place, Record(lock=lock, node=str(toolchain.node), node_version=node, sdk_version=version))
    return python, sdk_directory(install)


def _borrow_packages(prefix: Path, version: str) -> None:
    """Let the environment see ours, and let it take a version beyond the tested range for a tested one."""
    paths = {"base": str(prefix), "platbase": str(prefix)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    ours = sysconfig.get_path("purelib")
    (packages / "canary.pth").write_text(f"import site; site.addsitedir({ours!r})\n", "utf-8")
    if not sdk_is_tested(version):
        widened = "import pi_session_mcp.runtime.versions as versions\nversions.SDK_TESTED_BELOW = (999_999, 0, 0)\n"
        (packages / "canary_range.py").write_text(widened, "utf-8")
        (packages / "canary_range.pth").write_text("import canary_range\n", "utf-8")


def _installed(place: Place, version: str, toolchain: Toolchain) -> tuple[str, Path]:
    """Install the manifest that we ship with this version in the pin's place; its lock file's hash, and where it is."""
    temporary = place.installs / "new"
    temporary.mkdir(parents=True)
    manifest = json.loads(shipped_lock()["package.json"])
    manifest["dependencies"][SDK_NAME] = version
    (temporary / LOCK_FILES[0]).write_text(json.dumps(manifest), "utf-8")
    words = ("install", "--ignore-scripts", "--audit=false", "--fund=false", "--omit=dev")
    ended = _npm(toolchain, temporary, *words, within_s=INSTALL_WITHIN_S)
    if ended.returncode:
        raise CanaryError("npm could not install it")
    lock = hashlib.sha256((temporary / LOCK_FILES[1]).read_bytes()).hexdigest()
    return lock, temporary.rename(place.install(lock))


def _version_of(toolchain: Toolchain) -> str:
    version = anyio.run(node_version, toolchain.node, os.environ)
    if version is None:
        raise CanaryError("Node does not say its version")
    return version


def _disagreements(toolchain: Toolchain, sdk: Path) -> list[str]:
    """The differences, or that the SDK does not say its names where it did."""
    asked = [*_MCP_NAMES, _OF_A_SERVER, _GRANTED]
    argv = [str(toolchain.node), "--input-type=module", "-e", _NAMES, "--", str(sdk), *asked]
    ended = _run(argv, ROOT, dict(os.environ), within_s=ASK_WITHIN_S)
    if ended.returncode:
        return ["the names of its tools are not where they were"]
    said = json.loads(ended.stdout)
    return differences(Names(frozenset(said["builtIn"]), frozenset(said["mcp"])))


def _type_differences(toolchain: Toolchain, sdk: Path, temporary: Path) -> list[str]:
    """What the SDK's own types say otherwise than our restatement of them."""
    project = temporary / "tsconfig.json"
    types, modules = ROOT / "tools" / "js" / "sdk_types.ts", ROOT / "tools" / "js" / "node_modules"
    options = {"allowImportingTsExtensions": True, "typeRoots": [str(modules / "@types")]}
    paths = {SDK_NAME: [str(sdk / "dist" / "index.d.ts")]}
    base = ROOT / "pi_session_mcp" / "host" / "js" / "tsconfig.json"
    words = {"extends": str(base), "compilerOptions": {**options, "paths": paths}, "include": [], "files": [str(types)]}
    project.write_text(json.dumps(words), "utf-8")
    compiler = modules / "typescript" / "bin" / "tsc"
    ended = _run([str(toolchain.node), str(compiler), "--project", str(project)], ROOT, {}, within_s=ASK_WITHIN_S)
    return type_differences(ended.stdout, types.read_text("utf-8"), failed=bool(ended.returncode))


def _test(python: Path, tests: Sequence[str]) -> tuple[bool, str]:
    """Whether the tests passed, and their counts; what failed goes to stderr."""
    argv = [str(python), "-m", "pytest", *tests, "-n", "2", "--dist", "loadfile", "--tb=short", "-rf"]
    try:
        ended = _run(argv, ROOT, {**os.environ, CANARY: "1"}, within_s=TESTS_WITHIN_S)
    except subprocess.TimeoutExpired:
        return False, "the tests did not come to their end"
    if ended.returncode:
        _say(ended.stdout)
    counts = _COUNTS.findall(ended.stdout)
    return ended.returncode == 0, counts[-1].strip("= ") if counts else "no test came to its end"


def _npm(toolchain: Toolchain, cwd: Path, *words: str, within_s: int) -> subprocess.CompletedProcess[str]:
    return _run([*(toolchain.npm or ()), *words], cwd, dict(os.environ), within_s=within_s)


def _run(argv: list[str], cwd: Path, environ: dict[str, str], *, within_s: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=within_s,
        check=False,
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
