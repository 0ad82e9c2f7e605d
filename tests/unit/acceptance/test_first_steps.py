"""The words that the way from an empty home to a delegation is read from are those that the program prints."""

from __future__ import annotations

import pytest

from acceptance.live import first_steps
from pi_session_mcp.cli.outcome import Facts, Misuse, Outcome
from pi_session_mcp.cli.program import parse
from pi_session_mcp.cli.progress import ReportStage
from pi_session_mcp.cli.runtime import _installed
from pi_session_mcp.cli.selecting import Named, Stop, select
from pi_session_mcp.doctor.subjects import configuration, profiles
from pi_session_mcp.runtime.known_models import Known, Model
from pi_session_mcp.runtime.result import InstallCode, InstallResult
from pi_session_mcp.setup.messages import APPLY_REGISTERS, WORDS
from pi_session_mcp.setup.result import SetupCode

KNOWN = Known({}, {"a": (Model("m", ("off",)), Model("n", ("off",))), "b": ()}, has_catalogue=True)


def test_the_help_says_where_to_begin() -> None:
    from pi_session_mcp.cli.program import _HELP

    begin = first_steps._BEGIN.search(_HELP)
    assert begin is not None
    assert not isinstance(parse([begin[1], "--help"])(ReportStage()), Misuse)


@pytest.mark.parametrize("provider", [None, "a"])
def test_a_choice_that_is_missing_is_asked_for_by_its_option(provider: str | None) -> None:
    with pytest.raises(Stop) as stop:
        select(Named(provider, None, None, allow_unlisted=False), KNOWN, asking=False)

    assert isinstance(stop.value.answer, Misuse)
    option = first_steps._OPTION.search(stop.value.answer.message)
    assert option is not None
    assert option[1] == ("provider" if provider is None else "model")


def test_an_install_and_the_remedies_name_commands_that_are_recognized() -> None:
    outcome = _installed(InstallResult(InstallCode.INSTALLED))

    assert isinstance(outcome, Outcome)
    told = " ".join(value for block in outcome.blocks if isinstance(block, Facts) for _, value in block.rows)
    assert first_steps._NAMED.findall(told) == ["pi-session-mcp doctor"]
    assert first_steps._NAMED.findall(configuration.NAME_CONFIGURATION) == ["pi-session-mcp config init"]
    assert first_steps._LOGIN.search(profiles.PROFILE_AUTHENTICATION_MISSING.remedy)


def test_setup_leads_from_a_look_to_the_client() -> None:
    applied, verified = WORDS[SetupCode.APPLIED].remedy or "", WORDS[SetupCode.MCP_VERIFIED].remedy or ""

    found = [first_steps._OPERATION.search(text) for text in (APPLY_REGISTERS, applied)]
    assert [match and match[1] for match in found] == ["--apply", "--verify"]
    assert first_steps._RESTART in verified
