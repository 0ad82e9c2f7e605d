"""An audit is clean only when somebody answered for everything, and without an advisory."""

from __future__ import annotations

import json

import pytest

from tools.audit import Answer, exit_status, of_npm_audit, of_pip_audit

INSTALLED = frozenset({"anyio", "pydantic-core"})
CLEAN = [{"name": "anyio", "version": "4.12.0", "vulns": []}, {"name": "pydantic_core", "version": "2", "vulns": []}]


def pip_report(*rows: object) -> str:
    """`pip-audit --format json` about these distributions."""
    return json.dumps({"dependencies": rows, "fixes": []})


def npm_report(**vulnerabilities: object) -> str:
    """`npm audit --json` about a lock file."""
    return json.dumps({"auditReportVersion": 2, "vulnerabilities": vulnerabilities, "metadata": {}})


def test_an_answer_about_everything_and_without_an_advisory_is_clean() -> None:
    answers = [of_pip_audit(pip_report(*CLEAN), INSTALLED), of_npm_audit(npm_report(), 7)]

    assert exit_status(answers) == 0
    assert [line for answer in answers for line in answer.lines] == [
        "Python packages: no advisories about 2 packages",
        "npm packages: no advisories about 7 packages",
    ]


def test_an_advisory_is_named_with_its_package() -> None:
    python = of_pip_audit(pip_report(CLEAN[1], {**CLEAN[0], "vulns": [{"id": "PYSEC-2026-1"}]}), INSTALLED)
    npm = of_npm_audit(npm_report(undici={"severity": "high", "range": "<7"}), 7)

    assert python.lines[1:] == ["  anyio: PYSEC-2026-1"]
    assert npm.lines[1:] == ["  undici: high, <7"]
    assert exit_status([python]) == exit_status([npm]) == 1


@pytest.mark.parametrize(
    "output",
    [
        "",
        "no report",
        "[]",
        "{}",
        pip_report(CLEAN[0]),
        pip_report(CLEAN[0], {"name": "pydantic-core", "skip_reason": "Dependency not found on PyPI"}),
    ],
)
def test_a_distribution_that_pip_audit_did_not_ask_about_is_no_clean_audit(output: str) -> None:
    answer = of_pip_audit(output, INSTALLED)

    assert "could not ask" in answer.lines[0]
    assert exit_status([answer, of_npm_audit(npm_report(), 7)]) == 2


@pytest.mark.parametrize(
    ("output", "word"),
    [
        ("", "no report"),
        ('{"error": {"summary": "", "detail": ""}}', "no report"),
        ('{"vulnerabilities": {}}', "no report"),
        ('{"message": "405 Method Not Allowed", "statusCode": 405}', "answered 405"),
    ],
)
def test_a_registry_without_an_audit_is_no_clean_audit(output: str, word: str) -> None:
    answer = of_npm_audit(output, 7)

    assert answer.lines[0].startswith("npm packages: could not ask")
    assert word in answer.lines[0]
    assert exit_status([answer]) == 2


def test_an_advisory_counts_more_than_what_nobody_answered() -> None:
    found = Answer("npm packages", 7, advisories=("undici: high, <7",))
    unasked = Answer("Python packages", 2, unasked=("anyio",))

    assert exit_status([unasked, found]) == 1


def test_many_names_are_cut_short() -> None:
    answer = Answer("Python packages", 9, unasked=tuple("abcdefg"))

    assert answer.lines == ["Python packages: could not ask: a, b, c, d, e and 2 more"]
