"""Requests in flight."""

from __future__ import annotations

import pytest

from pi_session_mcp.server.wire.frames import INVALID_REQUEST, Refused, Request
from pi_session_mcp.server.wire.in_flight import MAX_BYTES, MAX_REQUESTS, InFlight


def request(message_id: int | str, size: int = 40) -> Request:
    return Request(message_id, "ping", None, size)


def test_a_second_request_of_the_same_id_is_refused_while_the_first_is_in_flight() -> None:
    book = InFlight()

    assert book.admit(request(7)) is None
    assert book.admit(request(7)) == Refused("duplicate_id", INVALID_REQUEST, "Request id is already in flight", 7)


@pytest.mark.parametrize(("first", "second"), [(7, "7"), ("7", 7), ("7", " 7")])
def test_ids_that_the_sdk_confuses_are_never_in_flight_together(first: int | str, second: int | str) -> None:
    book = InFlight()
    book.admit(request(first))

    refused = book.admit(request(second))

    assert refused is not None
    assert refused.id == second


def test_an_id_may_be_used_again_once_it_is_settled() -> None:
    book = InFlight()
    book.admit(request(7))
    book.settle("7")

    assert book.admit(request(7)) is None


def test_as_many_requests_as_allowed_are_taken_and_one_more_is_refused() -> None:
    book = InFlight()

    assert all(book.admit(request(number)) is None for number in range(MAX_REQUESTS))
    refused = book.admit(request("more"))
    assert refused == Refused("too_many_requests", INVALID_REQUEST, "Too many requests in flight", "more")
    assert len(book) == MAX_REQUESTS

    book.settle(0)
    assert book.admit(request("more")) is None


def test_as_many_bytes_as_allowed_are_taken_and_one_more_is_refused() -> None:
    book = InFlight()

    assert book.admit(request(1, MAX_BYTES)) is None
    assert book.admit(request(2, 1)) is not None

    book.settle(1)
    assert book.admit(request(2, MAX_BYTES)) is None


def test_settling_what_is_not_in_flight_changes_nothing() -> None:
    book = InFlight()
    book.settle("unknown")

    assert book.admit(request(1, MAX_BYTES)) is None
