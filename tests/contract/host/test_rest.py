"""When a host gives memory back: once, after it has been silent for a moment, and only if there is enough."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pi_session_mcp.host.process import SCRIPT
from tests.support.raw_host import WAIT_S

if TYPE_CHECKING:
    from pi_session_mcp.runtime.locate import Runtime

ENOUGH = 16 * 1024 * 1024
# Time passes only when `pass` says so.
BEGINNING = """
import { mock } from "node:test";
mock.timers.enable({ apis: ["setTimeout"] });
const { Rest } = await import(process.argv[1]);
let heap = 0, collections = 0;
const rest = new Rest(() => { collections += 1; heap = 1000; }, () => heap, 250);
const pass = (ms) => mock.timers.tick(ms);
"""


def seen(runtime: Runtime, body: str) -> Any:
    program = f"{BEGINNING}\nconst seen = [];\n{body}\nconsole.log(JSON.stringify(seen));"
    argv = [str(runtime.node), "--input-type=module", "-e", program, SCRIPT.with_name("rest.mjs").as_uri()]
    run = subprocess.run(argv, capture_output=True, timeout=WAIT_S, check=False)
    assert run.returncode == 0, run.stderr.decode()
    return json.loads(run.stdout)


@pytest.mark.parametrize(("heap", "collections"), [(ENOUGH - 1, 0), (ENOUGH, 1)])
def test_a_host_that_is_silent_collects_what_is_worth_it(runtime: Runtime, heap: int, collections: int) -> None:
    body = f"heap = {heap}; rest.disturb(); pass(249); seen.push(collections); pass(1); seen.push(collections);"

    assert seen(runtime, body) == [0, collections]


def test_each_sign_of_work_puts_the_rest_off(runtime: Runtime) -> None:
    body = f"""
    heap = {ENOUGH}; rest.disturb();
    for (let i = 0; i < 10; i++) {{ pass(249); rest.disturb(); }}
    seen.push(collections); pass(250); seen.push(collections);
    """

    assert seen(runtime, body) == [0, 1]


def test_a_host_that_works_on_a_request_does_not_rest_however_long_that_takes(runtime: Runtime) -> None:
    body = f"""
    heap = {ENOUGH};
    let answer; const work = rest.after(new Promise((resolve) => (answer = resolve)));
    rest.disturb(); pass(100_000); seen.push(collections);
    answer("answer"); seen.push(await work); pass(250); seen.push(collections);
    const fails = rest.after(Promise.reject(new Error("failed"))).catch((error) => error.message);
    seen.push(await fails); heap = {2 * ENOUGH}; pass(250); seen.push(collections);
    """

    assert seen(runtime, body) == [0, "answer", 1, "failed", 2]


def test_what_was_kept_is_not_collected_again(runtime: Runtime) -> None:
    body = f"""
    heap = {ENOUGH}; rest.disturb(); pass(250); seen.push(collections);
    rest.disturb(); pass(10_000); seen.push(collections);
    heap = {ENOUGH} + 1000; rest.disturb(); pass(250); seen.push(collections);
    """

    assert seen(runtime, body) == [1, 1, 2]


def test_the_usual_rest_collects_and_leaves_no_way_to_collect_behind(runtime: Runtime) -> None:
    body = """
    mock.timers.reset();
    const real = new Rest(undefined, () => { seen.push("looked"); return 1e9; }, 0);
    real.disturb(); await new Promise((resolve) => setTimeout(resolve, 1).ref());
    seen.push(typeof globalThis.gc);
    """

    assert seen(runtime, body) == ["looked", "looked", "undefined"]
