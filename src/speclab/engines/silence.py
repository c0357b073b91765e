"""Requests that a server has forgotten, and answers that never end: judged for each, by what others got meanwhile.

How long a request may rightly be silent depends on the server: a queue before its first token, a preemption, other
rows' prefills. So no fixed time is asked. A request is stuck when several that were sent after it was last heard of
have been answered whole, and it has been silent for a multiple of the time that they took; a server that serves in any
sensible order does not do that. That all are silent is another finding: the server hangs.
"""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass, field
from http import HTTPStatus

from speclab.engines.transport import Arrivals

LATER_ANSWERS = 3
"""So many requests sent later must have been answered before one counts as stuck."""
TIMES_AS_LONG = 2.0
"""And its silence must be so many times the median time that they took."""
BYTES_OF_A_TOKEN = 4096
BYTES_BESIDE = 2**20
"""An answer of more bytes than its tokens can need has no end."""
_RECENT = 1024


@dataclass(slots=True, eq=False)
class Flight:
    """One request under way.

    Attributes
    ----------
    arrivals : Arrivals
        What has come for it.
    sent_s : float
        Loop time of sending, s.
    max_tokens : int
        Most tokens that it asked for.
    spoke_s : float
        Loop time of the last piece with data, as of the last look; that of sending where none came, s. Comments that
        keep a connection open are no data.
    given_up : str, optional
        Why its answer is not waited for any longer.
    """

    arrivals: Arrivals
    sent_s: float
    max_tokens: int
    given_up: str | None = None
    spoke_s: float = field(init=False)
    _looked_at: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        self.spoke_s = self.sent_s

    def look(self) -> None:
        """Take in what has come since the last look."""
        arrivals, first = self.arrivals, self._looked_at
        came = arrivals.pieces[first:]
        self._looked_at = first + len(came)
        self._bytes += sum(map(len, came))
        for piece in reversed(range(len(came))):  # nearly always the last is it, and the load waits meanwhile
            if b"data" in came[piece]:
                self.spoke_s = arrivals.at_s[first + piece]
                break

    @property
    def endless(self) -> str | None:
        """In words, that the answer is longer than it can be; None where it is not, as of the last look."""
        most = BYTES_BESIDE + BYTES_OF_A_TOKEN * self.max_tokens
        if self._bytes <= most:
            return None
        return f"endless: {self._bytes:,} bytes came for an answer of at most {self.max_tokens} tokens"


@dataclass(slots=True)
class Flights:
    """The requests under way, and the last that were answered.

    Parameters
    ----------
    hung_after_s : float
        Silence of the whole server after which it counts as hung, s; a quarter of it is the shortest silence after
        which one request counts as stuck.
    """

    hung_after_s: float
    under_way: set[Flight] = field(default_factory=set)
    _answered: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _sign_of_life_s: float = float("-inf")

    def take_off(self, flight: Flight) -> None:
        """Note that a request is sent; the first after a pause is the server's next chance to speak."""
        if not self.under_way:
            self._sign_of_life_s = max(self._sign_of_life_s, flight.sent_s)
        self.under_way.add(flight)

    def land(self, flight: Flight, now_s: float, status: int | None) -> None:
        """Note that a request is over, with the status of its whole response; None where that did not come."""
        self.under_way.discard(flight)
        if status is not None:
            self._sign_of_life_s = now_s  # a server that refuses is not silent
        if status == HTTPStatus.OK:
            self._answered.append((flight.sent_s, now_s))

    def is_hung(self, now_s: float) -> bool:
        """Return whether nobody under way has heard of the server for too long."""
        for flight in self.under_way:
            flight.look()
            if flight.spoke_s > flight.sent_s:
                self._sign_of_life_s = max(self._sign_of_life_s, flight.spoke_s)
        return bool(self.under_way) and now_s - self._sign_of_life_s > self.hung_after_s

    def given_up(self, now_s: float) -> list[tuple[Flight, str]]:
        """Return the requests that are stuck or endless as of the last look, each with the reason."""
        reasons = [(flight, flight.endless or self._stuck(flight, now_s)) for flight in self.under_way]
        return [(flight, reason) for flight, reason in reasons if reason is not None]

    def _stuck(self, flight: Flight, now_s: float) -> str | None:
        silent_s = now_s - flight.spoke_s
        if silent_s < self.hung_after_s / 4:
            return None
        later_s = [end_s - sent_s for sent_s, end_s in self._answered if sent_s > flight.spoke_s]
        if len(later_s) < LATER_ANSWERS or silent_s < TIMES_AS_LONG * statistics.median(later_s):
            return None
        return (
            f"stuck: silent for {silent_s:.3g} s, while {len(later_s)} requests that were sent later were answered, "
            f"each in {statistics.median(later_s):.3g} s"
        )
