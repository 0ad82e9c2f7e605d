"""What is loaded is what the operator has pinned, at each start."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.contract.extended.asking import BAD_TREES, start, text_of
from tests.support.extensions import FIXTURE_NAME, FIXTURE_PIN, FIXTURE_VERSION
from tests.support.trees import survivors

if TYPE_CHECKING:
    from tests.support.shared_server import SharedServer

# --- the pin ---------------------------------------------------------------------------------------------------------


def test_a_package_that_is_replaced_between_resolving_and_loading_is_caught(shared: SharedServer) -> None:
    manifest = {"name": FIXTURE_NAME, "version": FIXTURE_VERSION, "pi": {"extensions": ["./src/index.ts"]}}
    extension = shared.extension
    extension.behave(replacesItself=json.dumps(manifest))

    refused = shared.child.call("pi_session_start", workspace="project")

    assert refused["error"]["code"] == "extension_version_mismatch"
    said = shared.failure()
    assert (said["stage"], said["extension"]) == ("extension_load", f"{FIXTURE_NAME}@{FIXTURE_VERSION}")
    assert survivors(extension.processes()) == []
    assert extension.counts() == (0, 0)


def test_an_update_takes_effect_at_the_next_start_and_is_refused_there(shared: SharedServer) -> None:
    extension, child = shared.extension, shared.child
    session = start(shared)
    manifest = extension.directory / "package.json"
    manifest.write_text(manifest.read_text().replace(FIXTURE_VERSION, "1.2.3"))

    refused = child.call("pi_session_start", workspace="project")

    assert refused["error"]["code"] == "extension_version_mismatch"
    assert text_of(child, session, "hello") == "you said: hello (1)"


def test_check_and_server_agree_about_every_tree(shared: SharedServer) -> None:
    child, world = shared.child, shared.world

    checked = subprocess.run(
        [sys.executable, "-m", "pi_session_mcp", "extensions", "check", "--json"],
        env=world.environment,
        capture_output=True,
        check=False,
    )

    report = json.loads(checked.stdout)
    assert (checked.returncode, report["exitCode"], checked.stderr) == (2, 2, b"")
    found = {one["profile"]: one["status"] for one in report["extensions"]}
    assert list(found) == sorted([*BAD_TREES, "reader", "coder", "thinker"])
    assert {found[alike] for alike in ("coder", "thinker")} == {found["reader"]}
    for profile in [*BAD_TREES, "reader"]:
        answer = child.call("pi_session_start", workspace="project", executionProfile=profile)
        assert found[profile] == ("ok" if answer["ok"] else answer["error"]["code"]), profile
    assert {profile for profile, status in found.items() if status != "ok"} == set(BAD_TREES)
    assert str(world.directory) not in checked.stdout.decode() + child.stderr.decode()


def test_an_extension_that_is_installed_meanwhile_needs_no_restart(shared: SharedServer) -> None:
    child = shared.child
    shared.uninstall()
    missing = child.call("pi_session_start", workspace="project")
    assert missing["error"]["code"] == "extension_not_installed"
    said = shared.failure()
    assert (said["stage"], said["extension"]) == ("extension_resolve", FIXTURE_PIN.removeprefix("npm:"))

    shared.renew()

    assert text_of(child, start(shared), "hello") == "you said: hello (1)"
