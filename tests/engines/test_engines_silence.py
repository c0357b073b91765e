"""What counts as stuck, endless or hung: arithmetic on times, so no clock runs here."""

from __future__ import annotations

import pytest

from speclab.engines.silence import BYTES_BESIDE, BYTES_OF_A_TOKEN, Flight, Flights
from speclab.engines.transport import Arrivals


def flight(flights: Flights, sent_s: float, max_tokens: int = 10) -> Flight:
    made = Flight(Arrivals(), sent_s, max_tokens)
    flights.take_off(made)
    return made


def comes(to: Flight, at_s: float, data: bytes = b"data: {}\n\n") -> None:
    to.arrivals.at_s.append(at_s)
    to.arrivals.pieces.append(data)


def answered(flights: Flights, sent_s: float, end_s: float) -> None:
    flights.land(flight(flights, sent_s), end_s, 200)


def stuck(flights: Flights, now_s: float) -> list[str]:
    assert not flights.is_hung(now_s)
    return [reason for _, reason in flights.given_up(now_s)]


def test_f2_a_request_that_is_silent_while_later_ones_are_answered_is_stuck() -> None:
    flights = Flights(hung_after_s=20.0)
    comes(flight(flights, 0.0), 0.1)  # its role chunk, and nothing more
    for start in (1.0, 3.0, 5.0):
        answered(flights, start, start + 2.0)
    assert stuck(flights, 5.0) == []
    (reason,) = stuck(flights, 7.1)
    assert reason == "stuck: silent for 7 s, while 3 requests that were sent later were answered, each in 2 s"


def test_a_request_that_waits_its_turn_is_not_stuck() -> None:
    flights = Flights(hung_after_s=20.0)
    waiting = [flight(flights, 0.0) for _ in range(8)]
    for turn, served in enumerate(waiting[:7]):  # one at a time, in the order of sending
        flights.land(served, 10.0 * (turn + 1), 200)
    assert stuck(flights, 75.0) == []


def test_a_silence_that_is_short_beside_the_answers_of_others_is_none() -> None:
    flights = Flights(hung_after_s=4.0)
    comes(flight(flights, 0.0), 10.0)
    for _ in range(5):
        answered(flights, 10.1, 14.1)
    assert stuck(flights, 15.0) == []  # preempted, say
    assert len(stuck(flights, 18.0)) == 1


def test_two_later_answers_are_too_few_to_tell() -> None:
    flights = Flights(hung_after_s=20.0)
    comes(flight(flights, 0.0), 0.1)
    answered(flights, 1.0, 2.0)
    answered(flights, 13.0, 14.0)
    assert stuck(flights, 16.0) == []


def test_an_answer_longer_than_its_tokens_can_be_has_no_end() -> None:
    flights = Flights(hung_after_s=20.0)
    endless = flight(flights, 0.0, max_tokens=10)
    comes(endless, 1.0, b"data: " + b"x" * (BYTES_BESIDE + 10 * BYTES_OF_A_TOKEN - 6))
    assert stuck(flights, 1.0) == []
    comes(endless, 2.0)
    (reason,) = stuck(flights, 2.0)
    assert reason.startswith("endless: 1,089,5")
    assert reason.endswith("for an answer of at most 10 tokens")


@pytest.mark.parametrize(("data", "hung"), [(b"data: {}\n\n", False), (b": ping\n\n", True)])
def test_a_server_that_only_keeps_its_connections_open_is_hung(data: bytes, hung: bool) -> None:
    flights = Flights(hung_after_s=20.0)
    silent = flight(flights, 0.0)
    for second in range(1, 25):
        comes(silent, float(second), data)
    assert flights.is_hung(24.0) is hung


def test_a_pause_between_requests_is_no_silence() -> None:
    flights = Flights(hung_after_s=20.0)
    answered(flights, 0.0, 1.0)
    assert not flights.is_hung(100.0)
    flight(flights, 100.0)
    assert not flights.is_hung(119.0)
    assert flights.is_hung(121.0)


def test_a_server_that_refuses_is_not_silent_and_has_answered_nothing() -> None:
    flights = Flights(hung_after_s=20.0)
    comes(flight(flights, 0.0), 0.1)
    for second in range(1, 20):
        flights.land(flight(flights, float(second)), second + 0.1, 503)
    assert stuck(flights, 39.0) == []
    assert flights.is_hung(39.2)
