"""Which versions are accepted: each bound, and one beyond."""

from __future__ import annotations

import pytest

from pi_session_mcp.runtime.versions import SDK_PIN, node_is_supported, parse_release, release_text, sdk_is_tested


@pytest.mark.parametrize("version", ["1.5.2", "1.5.99", "1.6.0", "1.6.999", SDK_PIN])
def test_the_tested_range_is_accepted(version: str) -> None:
    assert sdk_is_tested(version)


@pytest.mark.parametrize(
    "version", ["1.5.1", "1.7.0", "0.9.9", "2.0.0", "1.6.0-beta.1", "1.6", "1.6.0.1", "", "1.6.0\n"]
)
def test_what_was_not_tested_is_refused_on_either_side(version: str) -> None:
    assert not sdk_is_tested(version)


@pytest.mark.parametrize("version", ["v22.19.0", "22.19.0", "v22.19.1", "v24.0.0", "v100.0.0"])
def test_node_from_the_minimum_on_is_supported(version: str) -> None:
    assert node_is_supported(version)


@pytest.mark.parametrize("version", ["v22.18.99", "v20.11.0", "v25.0.0-nightly", "not a version", "v\u0661.0.0"])
def test_older_node_and_what_is_no_release_is_not_supported(version: str) -> None:
    assert not node_is_supported(version)


def test_only_a_release_is_repeated() -> None:
    assert release_text("v24.19.0") == "24.19.0"
    assert release_text("v24.19.0 /secret/path") is None
    assert parse_release("1" * 5000 + ".0.0") is None
