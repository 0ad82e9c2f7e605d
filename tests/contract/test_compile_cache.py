"""The real Node goes on while its compile cache is pruned, and makes it again."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

from pi_session_mcp.runtime.compile_cache import KEPT_S, prune
from tests.support.environment import ensure_installed

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import module from "node:module";
module.enableCompileCache(CACHE);
await import(MODULE);
process.stdout.write(".");
await new Promise((go) => process.stdin.once("data", go));
module.flushCompileCache();
process.exit(0);
"""


def entries(caches: Path) -> list[Path]:
    return [path for path in caches.rglob("*") if path.is_file() and path.name != ".pruned"]


def test_entries_may_be_removed_while_node_runs(tmp_path: Path) -> None:
    node = ensure_installed().node
    caches = tmp_path / "compile-cache"
    (tmp_path / "compiled.mjs").write_text("export const value = 1;")
    script = SCRIPT.replace("CACHE", json.dumps(str(caches / "pair")))
    script = script.replace("MODULE", json.dumps(str(tmp_path / "compiled.mjs")))

    def run(*, pruned: bool) -> None:
        command = [str(node), "--input-type=module", "-e", script]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            assert running.stdout.read(1) == b"."
            if pruned:
                prune(caches, now=time.time() + KEPT_S + 1)
                assert entries(caches) == []
            running.communicate(b"\n", timeout=20)
        assert running.returncode == 0

    run(pruned=False)
    assert entries(caches) != []
    run(pruned=True)
    run(pruned=False)

    assert entries(caches) != []
