"""Which names a first configuration takes, when there is nothing to compare them with."""

from __future__ import annotations

import pytest

from pi_session_mcp.cli.outcome import Outcome
from pi_session_mcp.cli.selecting import Named, Stop, select
from pi_session_mcp.runtime.known_models import Known, Model
from pi_session_mcp.terms.selection import Selection

OWN = Known({"mine": (Model("a", ("off",)),)})
NOTHING = Named(None, None, None, allow_unlisted=False)


def stopped(named: Named, known: Known) -> Outcome:
    with pytest.raises(Stop) as stop:
        select(named, known, asking=False)
    assert isinstance(stop.value.answer, Outcome)
    return stop.value.answer


@pytest.mark.parametrize(
    ("named", "known"),
    [
        (NOTHING, Known({})),
        (NOTHING, Known({"anthropic": ()})),
        (Named("anthropic", None, None, allow_unlisted=False), Known({"anthropic": (), "mine": OWN.providers["mine"]})),
        (Named("anthropic", "a", None, allow_unlisted=False), Known({})),
        (Named("anthropic", "a", None, allow_unlisted=False), OWN),
        (Named("mine", "b", None, allow_unlisted=False), OWN),
    ],
)
def test_without_a_catalogue_the_runtime_comes_first(
    named: Named, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PI_SESSION_MCP_CONFIG", raising=False)
    plain = stopped(named, known)
    monkeypatch.setenv("PI_SESSION_MCP_CONFIG", "/absent")
    misled = stopped(named, known)

    assert plain.members["code"] == "catalogue_missing"
    assert "Run `pi-session-mcp runtime install`" in str(plain.members["remediation"])
    assert "Run `env -u PI_SESSION_MCP_CONFIG pi-session-mcp runtime install`" in str(misled.members["remediation"])


@pytest.mark.parametrize("named", [NOTHING, Named("mine", None, None, allow_unlisted=False)])
def test_models_of_the_operators_own_need_no_catalogue(named: Named) -> None:
    assert select(named, OWN, asking=False) == Selection("mine", "a", "off")


def test_what_is_said_twice_needs_no_list() -> None:
    named = Named("new", "model", "max", allow_unlisted=True)

    assert select(named, Known({}), asking=False) == Selection("new", "model", "max")
