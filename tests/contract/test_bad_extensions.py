"""Broken, hostile and stuck extensions: the right code within its bound, nothing left, and the next session fine."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pi_session_mcp.deadlines import Deadlines
from pi_session_mcp.errors import Refusal
from tests.support.bad_extensions import (
    BIND,
    CANARY,
    CONFLICT,
    FAILED,
    GONE,
    HANGING,
    LOAD,
    MANIFESTS,
    PAIRS,
    RESOLVE,
    SOURCES,
    install_bad_packages,
    pinned,
    reached,
)
from tests.support.environment import ensure_installed
from tests.support.extensions import ExtensionWorld
from tests.support.one_host import on_one_host
from tests.support.real import run_turn
from tests.support.trees import WAIT_S

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pi_session_mcp.runtime.locate import Runtime
    from tests.support.extensions import Installed, Recorded
    from tests.support.one_host import OneHost

WHOLE = (
    *("throws-at-load", "throws-at-start", "tool-at-start", "replaces-read", "no-provider"),  # one of each refusal
    *("kills-its-host", "forges-frames", "floods-its-channel", "closes-the-channel"),  # none that a host survives
)
"""What the plain run tries with a server; the others come to the same refusals, which are tried without one."""

MATRIX = pytest.mark.matrix

AT_FAULT = {
    "twins": (CONFLICT, LOAD, "twin-b@1.0.0"),
    "same-flag-in-two": (FAILED, LOAD, "flag-b@1.0.0"),
    "second-is-broken": (FAILED, LOAD, "syntax-error@1.0.0"),
    "second-throws-at-start": (FAILED, BIND, "throws-at-start@1.0.0"),
}
"""Of two extensions, the one that is named."""

HANG_WHOLE = ("blocking-factory", "hanging-start", "blocking-start")
"""Likewise: what keeps a host's only thread, and what does not."""


def is_of_extension(code: str) -> bool:
    return code.startswith("extension_")


class Bench:
    """One server with a profile for each bad package, and a good session that shows that nothing was harmed."""

    def __init__(self, world: ExtensionWorld, child: Recorded, installed: Installed) -> None:
        self.world = world
        self.child = child
        self.witness = world.start_session(child, "good")
        (loaded,) = installed.notes("load")
        self.host_of_witness = loaded["pid"]

    def start(self, profile: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.child.call("pi_session_start", workspace="project", executionProfile=profile)
        return answer

    def begin_to_hang(self, name: str) -> object:
        """The id of a request whose host has come so far that it hangs: the next host's start competes with nothing."""
        arguments = {"workspace": "project", "executionProfile": name}
        request = self.child.start_request("tools/call", {"name": "pi_session_start", "arguments": arguments})
        deadline = monotonic() + WAIT_S
        while not self.reached(name).exists():
            assert monotonic() < deadline, name
            sleep(0.01)
        return request

    def reached(self, name: str) -> Path:
        return reached(self.world.directory, name)

    def answers_to(self, requests: Collection[object]) -> dict[object, Any]:
        """The structured results, in whatever order they come."""
        answers: dict[object, Any] = {}
        while len(answers) < len(requests):
            frame = self.child.receive()
            if frame.get("id") in requests:
                answers[frame["id"]] = frame["result"]["structuredContent"]
        return answers

    def assert_failed(self, answer: dict[str, Any], name: str, code: str, stage: str) -> None:
        """The session was refused so, and nothing that the extension or its place says came out."""
        assert (answer["ok"], answer["error"]["code"]) == (False, code)
        said = self.child.wait_for_failure_of(name)
        assert (said["code"], said["stage"]) == (code, stage)
        assert said.get("extension") == (f"{name}@1.0.0" if is_of_extension(code) else None)
        text = self.child.stderr.decode()
        assert CANARY not in text
        assert str(self.world.directory) not in text

    def assert_only_the_spare_host_is_left(self) -> None:
        hosts = [host for host in self.child.hosts() if host.pid != self.host_of_witness]
        assert len(hosts) <= 1, "a host of a refused session is alive"

    def assert_the_other_session_lives_on(self) -> None:
        assert run_turn(self.child, self.witness, "hello")["assistantText"].startswith("you said: hello")

    def assert_the_next_session_is_fine(self) -> None:
        started = self.start("good")
        assert started["ok"], started
        assert self.child.call("pi_session_close", sessionId=started["session"]["id"])["ok"]


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return ensure_installed()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, runtime: Runtime) -> Iterator[Bench]:
    with ExtensionWorld(tmp_path_factory.mktemp("bad") / "world", runtime) as world:
        installed = install_bad_packages(world.agent_directory, world.directory)
        world.profiles({"good": {}, **{name: pinned(name) for name in [*SOURCES, *HANGING, *MANIFESTS]}, **PAIRS})
        yield Bench(world, world.serve(), installed)


def kinds() -> Iterator[object]:
    """Every bad extension, and whether it is the first that is refused with its code."""
    seen = set()
    for name in sorted(SOURCES, key=lambda name: name not in WHOLE):
        _, code, _ = SOURCES[name]
        if code:
            yield pytest.param(name, code not in seen, id=name, marks=() if name in WHOLE else MATRIX)
            seen.add(code)


@pytest.mark.parametrize(("name", "is_first"), [*kinds()])
def test_a_bad_extension_is_refused_and_nothing_of_it_is_left(bench: Bench, name: str, *, is_first: bool) -> None:
    _, code, stage = SOURCES[name]

    bench.assert_failed(bench.start(name), name, code, stage)

    bench.assert_only_the_spare_host_is_left()
    bench.assert_the_other_session_lives_on()
    if is_first:
        bench.assert_the_next_session_is_fine()


@pytest.mark.parametrize("which", ["some", pytest.param("the others", marks=MATRIX)])
def test_extensions_that_hang_are_refused_at_the_bound_and_nothing_of_them_is_left(bench: Bench, which: str) -> None:
    wanted = [name for name in HANGING if (name in HANG_WHOLE) is (which == "some")]
    names = {bench.begin_to_hang(name): name for name in wanted}

    for request, answer in bench.answers_to(names).items():
        bench.assert_failed(answer, names[request], FAILED, HANGING[names[request]][1])

    bench.assert_only_the_spare_host_is_left()
    bench.assert_the_other_session_lives_on()
    bench.assert_the_next_session_is_fine()


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_bad_manifest_is_refused_without_a_host(bench: Bench, name: str) -> None:
    before = bench.child.hosts()

    assert bench.start(name)["error"]["code"] == FAILED

    said = bench.child.wait_for_failure_of(name)
    assert (said["stage"], said["extension"]) == (RESOLVE, f"{name}@1.0.0")
    assert {host.pid for host in before} <= {host.pid for host in bench.child.hosts()}


@pytest.mark.parametrize(
    ("profile", "code", "stage", "extension"),
    [
        pytest.param(profile, *blamed, marks=() if profile == "second-throws-at-start" else MATRIX)
        for profile, blamed in AT_FAULT.items()
    ],
)
def test_of_two_extensions_the_one_at_fault_is_named(
    bench: Bench, profile: str, code: str, stage: str, extension: str
) -> None:
    assert bench.start(profile)["error"]["code"] == code

    said = bench.child.wait_for_failure_of(profile)
    assert (said["stage"], said["extension"]) == (stage, extension)
    bench.assert_only_the_spare_host_is_left()


# --- the same without a server, on one host for all -------------------------------------------------------------------


async def refusal_of(sessions: OneHost, alias: str) -> tuple[str, str, str | None]:
    """The code, the stage and the extension to which a session of this profile was refused."""
    with pytest.raises(Refusal) as refused:
        await sessions.start(alias)
    refusal = refused.value
    assert CANARY not in repr((refusal, vars(refusal), sessions.said))
    return str(refusal.code), str(refusal.stage), refusal.extension


@pytest.mark.anyio
async def test_each_bad_extension_is_told_from_the_others_by_its_code_and_stage(bench: Bench, runtime: Runtime) -> None:
    expected = {name: (code, stage) for name, (_, code, stage) in SOURCES.items() if code not in {"", GONE}}
    blamed = {
        **{
            name: (*refusal, f"{name}@1.0.0" if is_of_extension(refusal[0]) else None)
            for name, refusal in expected.items()
        },
        **AT_FAULT,
    }
    async with on_one_host(bench.world, runtime, Deadlines(check_step_s=60, creation_step_s=60)) as sessions:
        assert {name: await refusal_of(sessions, name) for name in blamed} == blamed


@pytest.mark.anyio
async def test_extensions_that_hang_anywhere_are_refused_at_the_bound(bench: Bench, runtime: Runtime) -> None:
    names = [name for name in HANGING if not name.startswith("blocking")]
    told: dict[str, tuple[str, str, str | None]] = {}

    async def find_out(name: str) -> None:
        told[name] = await refusal_of(sessions, name)

    for name in names:
        reached(bench.world.directory, name).unlink(missing_ok=True)
    async with on_one_host(bench.world, runtime, Deadlines(creation_step_s=15.0)) as sessions:
        assert (await refusal_of(sessions, "no-export"))[0] == FAILED  # by now the host is up
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(find_out, name)

    assert told == {name: (FAILED, HANGING[name][1], f"{name}@1.0.0") for name in names}
    assert all(reached(bench.world.directory, name).exists() for name in names)


# --- and what is fine ------------------------------------------------------------------------------------------------


def test_two_extensions_that_get_along_are_loaded_together(bench: Bench) -> None:
    started = bench.start("beside-the-fixture")

    assert started["ok"], started
    prompted = bench.child.call("pi_session_prompt", sessionId=started["session"]["id"], prompt="tools", waitMs=30_000)
    assert prompted["turn"]["assistantText"].endswith("fixture_tool twin")
    assert bench.child.call("pi_session_close", sessionId=started["session"]["id"])["ok"]


def test_an_extension_may_narrow_the_tools_and_cannot_change_the_rest(bench: Bench) -> None:
    started = bench.start("another-model")

    assert started["ok"], started
    assert started["session"]["thinkingLevel"] == "off"
    assert bench.child.call("pi_session_close", sessionId=started["session"]["id"])["ok"]


def test_after_all_of_them_no_refused_session_is_listed(bench: Bench) -> None:
    bench.assert_the_other_session_lives_on()

    assert [session["id"] for session in bench.child.call("pi_session_list")["sessions"]] == [bench.witness]
