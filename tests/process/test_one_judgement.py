"""The doctor and a start judge alike: what one calls broken the other refuses, and by the same name."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final

import pytest

from pi_session_mcp.demo.model import write_agent_directory
from tests.support.environment import ensure_installed
from tests.support.judged import Diagnosis, diagnose, start_code, weak_server
from tests.support.real import PROFILE, RealWorld
from tests.support.warm_program import WarmProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.process.client import Child


ASCII: Final = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
UTF_8: Final = {"LC_ALL": "C.UTF-8"}
LOCALES: Final = [pytest.param(ASCII, id="ascii"), pytest.param(UTF_8, id="utf-8", marks=pytest.mark.matrix)]
PAST: Final = 1_000
FUTURE: Final = 10**15
ENDPOINT: Final = {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "models": [{"id": "m"}]}
VARIABLES: Final = {"HELD": "key", "EMPTY": ""}

PROVIDERS: Final[dict[str, dict[str, Any]]] = {
    "plain": {**ENDPOINT, "apiKey": "key"},
    "keyless": ENDPOINT,
    "by_variable": {**ENDPOINT, "apiKey": "$HELD"},
    "by_absent_variable": {**ENDPOINT, "apiKey": "$ABSENT"},
    "by_empty_variable": {**ENDPOINT, "apiKey": "$EMPTY"},
    "by_command": {**ENDPOINT, "apiKey": "!echo key"},
    "by_failing_command": {**ENDPOINT, "apiKey": "!exit 1"},
    "header_by_absent_variable": {**ENDPOINT, "apiKey": "key", "headers": {"x": "$ABSENT"}},
    "header_by_failing_command": {**ENDPOINT, "apiKey": "key", "headers": {"x": "!exit 1"}},
    "thinking": {**ENDPOINT, "apiKey": "key", "models": [{"id": "m", "reasoning": True}]},
    "stored": ENDPOINT,
    "stored_by_variable": ENDPOINT,
    "stored_by_absent_variable": ENDPOINT,
    "stored_command": ENDPOINT,
    "stored_failing_command": ENDPOINT,
    "stored_nothing": ENDPOINT,
    "stored_text": ENDPOINT,
    "stored_number": ENDPOINT,
    "stored_null": {**ENDPOINT, "apiKey": "key"},
}
STORED: Final[dict[str, Any]] = {
    "stored": {"type": "api_key", "key": "key"},
    "stored_by_variable": {"type": "api_key", "key": "${HELD}"},
    "stored_by_absent_variable": {"type": "api_key", "key": "$ABSENT"},
    "stored_command": {"type": "api_key", "key": "!echo key"},
    "stored_failing_command": {"type": "api_key", "key": "!exit 1"},
    "stored_nothing": {"type": "api_key"},
    "stored_text": "no credential",
    "stored_number": {"type": "api_key", "key": 5},
    "stored_null": None,  # the SDK itself could then list none of them
    "anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": FUTURE},
    "openai-codex": {"type": "oauth", "access": "a", "refresh": "r", "expires": PAST},
}
NOT_JUDGED: Final = {
    "by_command",
    "by_failing_command",
    "header_by_failing_command",
    "stored_command",
    "stored_failing_command",
}
"""What only a command would tell: the doctor says so, and a start may be refused or not."""


def _profile(**selected: str) -> dict[str, Any]:
    return {"permissionProfile": "read-only", **PROFILE, **selected}


PROFILES: Final[dict[str, dict[str, Any]]] = {
    **{name: _profile(provider=name, model="m") for name in PROVIDERS},
    "reader": {**_profile(), "default": True},
    "coder": {**_profile(), "permissionProfile": "coding"},
    "unknown_provider": _profile(provider="nobody", model="m"),
    "unknown_model": _profile(provider="plain", model="nothing"),
    "other_level": _profile(provider="plain", model="m", thinkingLevel="high"),
    "no_level": _profile(provider="thinking", model="m", thinkingLevel="max"),
    "a_level": _profile(provider="thinking", model="m", thinkingLevel="high"),
    "catalogue_without_login": _profile(provider="google", model="gemini-2.5-pro"),
    "logged_in": _profile(provider="anthropic", model="claude-opus-5-5"),
    "granted": {
        **_profile(),
        "mcpServers": {"kb": {"command": "/bin/false", "tools": {"t": {"name": "t", "readOnly": True}}}},
    },
}


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProgram]:
    with WarmProgram() as warm:
        yield warm


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RealWorld]:
    with RealWorld(tmp_path / "world", ensure_installed()) as made:
        yield made
    for path in (tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir() and not path.is_symlink())):
        path.chmod(0o755)


def select_all(world: RealWorld) -> None:
    """Every profile, over every provider."""
    models = json.loads((world.agent_directory / "models.json").read_text())
    models["providers"] |= PROVIDERS
    (world.agent_directory / "models.json").write_text(json.dumps(models))
    (world.agent_directory / "auth.json").write_text(json.dumps(STORED))
    aliases = {name: profile for name, profile in PROFILES.items() if name != "granted"}
    world.configure(executionProfiles=aliases)


def test_what_the_doctor_says_of_each_profile_its_start_says_too(world: RealWorld, warm: WarmProgram) -> None:
    select_all(world)
    diagnosis = diagnose(world, VARIABLES, warm=warm)
    child = world.serve(weak_server(), **VARIABLES)

    for name in PROFILES:
        if name == "granted":
            continue
        said, started = diagnosis.codes(name), start_code(child, profile=name)
        if name in NOT_JUDGED:
            assert (name, said) == (name, set())
            assert started in {"ok", "local_authentication_unavailable"}, name
            assert diagnosis.notes(name), name
        else:
            assert (name, said or {"ok"}) == (name, {started})
            assert not diagnosis.notes(name), name


def test_a_fresh_home_is_told_about_by_both(world: RealWorld, warm: WarmProgram) -> None:
    world.configure(
        piAgentDirectory=str(world.directory / "nowhere" / "agent"),
        executionProfiles={"reader": {**_profile(provider="anthropic", model="claude-opus-5-5"), "default": True}},
    )
    before = sorted(world.directory.rglob("*"))

    diagnosis = diagnose(world, {}, warm=warm)

    assert sorted(world.directory.rglob("*")) == before
    assert diagnosis.codes("reader") == {"local_authentication_missing"}
    assert start_code(world.serve(weak_server())) == "local_authentication_missing"


def make_workspaces(world: RealWorld) -> dict[str, str]:
    """Directories good and bad, by alias."""
    places = world.directory / "places"
    for name in ("fine", "café", "closed", "not_searchable", "not_listable", "read_only", "above/inner"):
        (places / name).mkdir(parents=True)
    (places / "file").write_text("")
    os.mkfifo(places / "fifo")
    (places / "dangling").symlink_to("nowhere")
    (places / "circle").symlink_to("circle")
    (places / "linked").symlink_to("fine")
    modes = {"closed": 0, "not_searchable": 0o600, "not_listable": 0o300, "read_only": 0o500, "above": 0}
    if sys.platform == "linux":
        odd = places / os.fsdecode(b"odd-\xff")
        odd.mkdir()
        (places / "odd").symlink_to(odd)
    names = ("fine", "file", "fifo", "dangling", "circle", "linked", "missing", "closed", "not_searchable", "odd")
    for name, mode in modes.items():
        (places / name).chmod(mode)
    aliases = {name: str(places / name) for name in (*names, "not_listable", "read_only")}
    return {**aliases, "accent": str(places / "café"), "inner": str(places / "above" / "inner")}


@pytest.mark.parametrize("locale", LOCALES)
def test_what_the_doctor_says_of_each_workspace_its_start_says_too(locale: dict[str, str], world: RealWorld) -> None:
    workspaces = make_workspaces(world)
    world.configure(
        workspaces={**workspaces, "project": str(world.workspace)},
        executionProfiles={name: PROFILES[name] for name in ("reader", "unknown_provider", "granted")},
    )
    diagnosis = diagnose(world, locale)
    child = world.serve(weak_server(), **locale)

    said = {alias: diagnosis.codes(alias) or {"ok"} for alias in workspaces}

    assert said == {alias: {start_code(child, alias)} for alias in workspaces}
    assert [alias for alias in workspaces if said[alias] == {"ok"}] == ["fine", "linked", "read_only", "accent"]
    # Whatever else is wrong with a profile, an unusable workspace is what is said first.
    assert start_code(child, "missing", "unknown_provider") == "workspace_unavailable"
    assert start_code(child, "closed", "granted") == "workspace_unavailable"


def _write(name: str, text: str) -> Callable[[RealWorld], None]:
    def write(world: RealWorld) -> None:
        (world.agent_directory / name).write_text(text)

    return write


def _provider(**fields: Any) -> Callable[[RealWorld], None]:
    def spoil(world: RealWorld) -> None:
        models = json.loads((world.agent_directory / "models.json").read_text())
        models["providers"]["other"] = fields
        (world.agent_directory / "models.json").write_text(json.dumps(models))

    return spoil


def _unreadable(world: RealWorld) -> None:
    (world.agent_directory / "auth.json").write_text("{}")
    (world.agent_directory / "auth.json").chmod(0)


def _fifo(world: RealWorld) -> None:
    os.mkfifo(world.agent_directory / "settings.json")


def _dangling(world: RealWorld) -> None:
    (world.agent_directory / "auth.json").symlink_to("nowhere")


FILES: Final[dict[str, tuple[Callable[[RealWorld], None], str]]] = {
    "a model without an id": (_provider(**{**ENDPOINT, "models": [{"id": ""}]}), "models_refused"),
    "a provider without anything": (_provider(), "models_refused"),
    "a cost as text": (_provider(**{**ENDPOINT, "models": [{"id": "m", "cost": "free"}]}), "models_refused"),
    "a model without an api": (_provider(baseUrl="http://127.0.0.1:9", models=[{"id": "m"}]), "models_refused"),
    "an empty object": (_write("models.json", "{}"), "models_refused"),
    "a list": (_write("models.json", "[]"), "models_not_json"),
    "a comment": (_write("models.json", '{"providers": {}} // off'), "models_not_json"),
    "half a file of credentials": (_write("auth.json", '{"a": '), "auth_not_json"),
    "credentials without permission": (_unreadable, "auth_unreadable"),
    "credentials behind a link that leads nowhere": (_dangling, "auth_unreadable"),
    "settings that never end": (_fifo, "settings_unreadable"),
    "settings of another type": (_write("settings.json", '{"retry": 1}'), "settings_refused"),
    "settings that are no object": (_write("settings.json", "1"), "settings_not_json"),
}
FAILURE: Final = "pi_session_creation_failed"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealWorld, Child]]:
    """A world with a server, for the tests that change nothing but files of Pi: each start reads them anew."""
    with RealWorld(tmp_path_factory.mktemp("running") / "world", ensure_installed()) as made:
        yield made, made.serve(weak_server())


@pytest.fixture
def served(running: tuple[RealWorld, Child]) -> tuple[RealWorld, Child]:
    """That world, with Pi's files as new."""
    world, _ = running
    world.agent_directory.chmod(0o755)
    shutil.rmtree(world.agent_directory)
    write_agent_directory(world.agent_directory, world.model.base_url)
    return running


@pytest.mark.parametrize("name", FILES)
def test_what_is_wrong_with_a_file_of_pi_is_the_same_to_both(
    name: str, served: tuple[RealWorld, Child], warm: WarmProgram
) -> None:
    (world, child), (spoil, fault) = served, FILES[name]
    before = sum(said["event"] == FAILURE for said in child.diagnostics)
    spoil(world)

    diagnosis = diagnose(world, {}, warm=warm)

    assert diagnosis.codes(f"{fault.partition('_')[0]}.json") == {start_code(child)} == {"pi_configuration_invalid"}
    assert child.wait_for_diagnostic(FAILURE, after=before)["reason"] == fault


def test_an_agent_directory_that_is_in_a_file_is_the_same_to_both(world: RealWorld, warm: WarmProgram) -> None:
    world.configure(piAgentDirectory=str(world.configuration / "agent"))

    diagnosis = diagnose(world, {}, warm=warm)
    child = world.serve(weak_server())

    assert diagnosis.codes("models.json") == {start_code(child)} == {"pi_configuration_invalid"}
    assert child.wait_for_diagnostic(FAILURE)["reason"] == "models_unreadable"


def _locked(kind: str, age_s: int) -> Callable[[RealWorld], None]:
    def lock(world: RealWorld) -> None:
        (world.agent_directory / "auth.json").write_text("{}")
        path = world.agent_directory / "auth.json.lock"
        path.mkdir() if kind == "directory" else path.write_text("")
        then = time.time() - age_s
        os.utime(path, (then, then))

    return lock


def _read_only(world: RealWorld) -> None:
    world.agent_directory.chmod(0o500)


def _read_only_with_credentials(world: RealWorld) -> None:
    (world.agent_directory / "auth.json").write_text("{}")
    world.agent_directory.chmod(0o500)


def _linked_into_a_read_only_directory(world: RealWorld) -> None:
    other = Path(mkdtemp(dir=world.directory))
    (other / "auth.json").write_text("{}")
    (world.agent_directory / "auth.json").symlink_to(other / "auth.json")
    other.chmod(0o500)


STORES: Final = [
    _read_only,
    pytest.param(_read_only_with_credentials, marks=pytest.mark.matrix),
    pytest.param(_linked_into_a_read_only_directory, marks=pytest.mark.matrix),
    pytest.param(_locked("directory", 0), id="fresh lock", marks=pytest.mark.matrix),
    pytest.param(_locked("file", 0), id="fresh file for a lock", marks=pytest.mark.matrix),
    pytest.param(_locked("file", 3600), id="old file for a lock"),
]


@pytest.mark.parametrize("spoil", STORES)
def test_where_pi_cannot_lock_its_credentials_both_say_so(
    spoil: Callable[[RealWorld], None], served: tuple[RealWorld, Child], warm: WarmProgram
) -> None:
    world, child = served
    spoil(world)

    assert diagnose(world, {}, warm=warm).codes("agent directory") == {"local_authentication_unavailable"}
    assert start_code(child) == "local_authentication_unavailable"


def test_a_lock_that_pi_takes_over_is_only_told_about(served: tuple[RealWorld, Child], warm: WarmProgram) -> None:
    world, child = served
    _locked("directory", 3600)(world)

    assert diagnose(world, {}, warm=warm).codes("agent directory") == {"local_authentication_unavailable"}
    assert start_code(child) == "ok"


def test_a_proxy_that_is_none_is_the_same_to_both(world: RealWorld, warm: WarmProgram) -> None:
    variables = {"https_proxy": "proxy.example:8080"}

    assert diagnose(world, variables, warm=warm).codes("proxy") == {"proxy_invalid"}
    assert start_code(world.serve(weak_server(), **variables)) == "proxy_invalid"


def test_an_sdk_that_cannot_be_loaded_is_the_same_to_both(world: RealWorld, warm: WarmProgram) -> None:
    package = world.directory / "sdk"
    (package / "dist").mkdir(parents=True)
    (package / "package.json").write_text('{"name": "@earendil-works/pi-coding-agent", "version": "1.6.0"}')
    (package / "dist" / "index.js").write_text("export const VERSION = '1.6.0';")
    world.configure(runtime={"sdk": str(package)})

    assert diagnose(world, {}, warm=warm).codes("Pi runtime") == {"pi_runtime_unavailable"}
    assert start_code(world.serve(weak_server())) == "pi_runtime_unavailable"


def ignored(diagnosis: Diagnosis) -> bool:
    """Whether the doctor says that the variable does not count."""
    (check,) = (check for check in diagnosis.checks if check["id"] == "pi_agent_directory_ignored")
    return bool(check["severity"] == "warning")


def _without_agent_directory(world: RealWorld) -> None:
    said = json.loads(world.configuration.read_text())
    del said["piAgentDirectory"]
    world.configuration.write_text(json.dumps(said))


@pytest.mark.parametrize(("value", "reason"), [("agent", "not_absolute"), ("{world}/agent", "in_project")])
def test_a_variable_that_is_ignored_is_told_about_by_both(
    value: str, reason: str, world: RealWorld, warm: WarmProgram
) -> None:
    _without_agent_directory(world)
    variables = {"PI_CODING_AGENT_DIR": value.format(world=world.directory)}

    diagnosis = diagnose(world, variables, warm=warm)
    child = world.serve(weak_server(), **variables)

    assert ignored(diagnosis)
    assert diagnosis.codes("reader") == {start_code(child)} == {"unknown_provider"}
    assert child.wait_for_diagnostic(FAILURE)["agentDirectoryVariable"] == reason


def test_in_the_root_directory_the_variable_counts_for_both(world: RealWorld, warm: WarmProgram) -> None:
    _without_agent_directory(world)
    variables = {"PI_CODING_AGENT_DIR": str(world.agent_directory)}
    in_root = ("/bin/sh", "-c", 'cd / && exec "$@"', "sh", *weak_server())

    diagnosis = diagnose(world, variables, Path("/"), warm=warm)

    assert not ignored(diagnosis)
    assert diagnosis.codes("reader") == set()
    assert start_code(world.serve(in_root, **variables)) == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is UTF-8")
@pytest.mark.parametrize("locale", LOCALES)
def test_names_that_are_not_utf_8_cost_at_most_what_they_name(locale: dict[str, str], world: RealWorld) -> None:
    odd = world.directory / os.fsdecode(b"odd-\xff")
    (odd / "code").mkdir(parents=True)
    (odd / "home").mkdir()
    _without_agent_directory(world)
    said = json.loads(world.configuration.read_text())
    configuration = odd / "config.json"
    configuration.write_text(json.dumps({**said, "workspaces": {"project": str(world.workspace), "odd": "code"}}))
    variables = {
        **locale,
        "PI_SESSION_MCP_CONFIG": str(configuration),
        "HOME": str(odd / "home"),
        "PATH": f"{odd}:{os.environ['PATH']}",
        "TMPDIR": str(odd),
        "XDG_STATE_HOME": str(odd),
        "PI_CODING_AGENT_DIR": str(world.agent_directory),
    }

    diagnosis = diagnose(world, variables, odd)
    child = world.serve(("/bin/sh", "-c", f'cd {world.directory}/odd* && exec "$@"', "sh", *weak_server()), **variables)

    assert diagnosis.codes("odd") == {start_code(child, "odd")} == {"workspace_unavailable"}
    assert diagnosis.codes("project", "reader") == set()
    assert start_code(child) == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is UTF-8")
def test_an_agent_directory_whose_name_is_not_utf_8_is_refused_by_both(world: RealWorld) -> None:
    _without_agent_directory(world)
    odd = world.directory / os.fsdecode(b"odd-\xff")
    odd.mkdir()
    variables = {"HOME": str(odd)}

    assert diagnose(world, variables).codes("Pi configuration") == {"pi_configuration_invalid"}
    assert start_code(world.serve(weak_server(), **variables)) == "pi_configuration_invalid"
    assert list(world.directory.glob("odd*")) == [odd]
    assert list(odd.iterdir()) == []
