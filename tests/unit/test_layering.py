"""What a module's docstring promises is held by the import contracts."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tools.layers_reference import layers

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / "pi_session_mcp"
STANDALONE = ("keeper.program", "keeper.session_command", "platform.processes")
"""The keeper's programs and what they import: Python runs them without the package and its environment on the path."""
BARE = tuple(name.rpartition(".")[2] for name in STANDALONE)


def modules_that_call_themselves_pure() -> set[str]:
    """Names of the modules whose docstring has the word “Pure”."""
    found = set()
    for path in PRODUCT.rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if re.search(r"\bPure\b", docstring):
            found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


def test_every_module_that_calls_itself_pure_is_held_to_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (pure,) = (contract for contract in contracts if contract["name"] == "Pure modules do no I/O")

    assert modules_that_call_themselves_pure() - set(pure["source_modules"]) == set()


def imported(path: Path) -> set[str]:
    """The top-level names of all absolute imports in a file, wherever they stand."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_everything_that_the_product_imports_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split(r"[^\w-]", requirement)[0].replace("-", "_") for requirement in declared}
    ours = {"pi_session_mcp", *BARE}  # as the keeper's programs find each other

    used = {name for path in PRODUCT.rglob("*.py") for name in imported(path)} - set(sys.stdlib_module_names) - ours
    assert used <= names
    assert names - used <= {"referencing"}  # comes with jsonschema, and its errors are judged by their class


@pytest.mark.parametrize("name", STANDALONE)
def test_the_keepers_programs_import_the_standard_library_and_each_other_only(name: str) -> None:
    path = PRODUCT / Path(*name.split(".")).with_suffix(".py")
    ours = {
        node.module
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pi_session_mcp")
    }

    assert imported(path) <= {*sys.stdlib_module_names, *BARE, "pi_session_mcp"}
    assert ours <= {
        "pi_session_mcp.keeper",
        "pi_session_mcp.platform",
        *(f"pi_session_mcp.{one}" for one in STANDALONE),
    }


STARTS_AND_WAITS = {
    *("os.pipe", "os.pipe2", "os.fork", "os.forkpty", "os.posix_spawn", "os.posix_spawnp"),
    *("os.wait", "os.wait3", "os.wait4", "os.waitid", "os.waitpid", "os.pidfd_open", "os.popen", "os.system"),
    *("subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output"),
    *("anyio.open_process", "anyio.run_process"),
    *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
}
OWN_PIPES = {
    "demo/server.py": "the demonstration starts the server as a client does; a keeper would clean up after it",
    "server/process/lifecycle.py": "a pipe to itself, which the thread that ends the process waits for",
    "server/process/stdout_guard.py": "a pipe in place of its own descriptor 1",
    "server/wire/opening.py": "a pipe to itself, which wakes the loop that answers",
}


def called(path: Path) -> set[str]:
    """The names of all calls of a function of a module, such as `os.pipe`."""
    return {
        f"{node.func.value.id}.{node.func.attr}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    } | imported_by_name(path)


def imported_by_name(path: Path) -> set[str]:
    """What is imported from a module by its name, such as `subprocess.Popen`."""
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_only_the_keepers_and_the_platforms_folder_make_pipes_for_a_process_or_wait_for_one() -> None:
    found = {
        str(path.relative_to(PRODUCT))
        for path in PRODUCT.rglob("*.py")
        if path.relative_to(PRODUCT).parts[0] not in {"keeper", "platform"} and called(path) & STARTS_AND_WAITS
    }
    assert found == set(OWN_PIPES)


def asks_for_the_system(path: Path) -> bool:
    """Whether a file compares something with the name of an operating system."""
    parts = [
        part
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
    ]
    return any(isinstance(part, ast.Constant) and part.value in {"linux", "darwin"} for part in parts)


def test_platform_branches_stand_in_the_platforms_folder() -> None:
    found = {path.relative_to(PRODUCT).parts[0] for path in PRODUCT.rglob("*.py") if asks_for_the_system(path)}

    assert found == {"platform"}


def test_the_architecture_has_a_row_for_each_layer() -> None:
    document = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    names = {name for layer in layers() for name in layer.split(" | ")} - {"__main__"}

    assert {name for name in names if f"`{name}/`" not in document and f"`{name}.py`" not in document} == set()
