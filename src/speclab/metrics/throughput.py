"""Tokens a second: of the server, of one user, over the time of activity; and how many answers share a server."""

from __future__ import annotations

import numpy as np

from speclab.metrics.latency import MS_PER_S, time_per_output_token, times_per_output_token
from speclab.metrics.window import CellWindow


def system_throughput(cut: CellWindow) -> float:
    """Return tokens whose event fell inside the window / the window's length, tok/s.

    Where the server keeps no running count, the answers that cross a border give a share of their tokens.
    """
    return float(cut.delivered(cut.window).tokens.sum()) / cut.window.length_s


def activity_throughput(cut: CellWindow) -> float | None:
    """Return tokens over the time of activity, tok/s; None where no request lies inside the window as a whole.

    Tokens of the counted requests / (first counted start to last counted end). The stretch holds tokens of requests
    that are not counted, at both its ends, so this falls short of `system_throughput` the more, the longer an answer
    is beside the window.
    """
    counted = cut.counted
    if counted.empty:
        return None
    stretch_s = float(counted["end_s"].max() - counted["start_s"].min())
    return float(counted["output_tokens"].sum()) / stretch_s if stretch_s > 0 else None


def user_throughput(cut: CellWindow) -> float | None:
    """Return 1 / time per output token, mean over the ended answers, tok/s; None without such answers."""
    rates = _user_rates(cut)
    return float(rates.mean()) if len(rates) else None


def user_throughput_quantile(cut: CellWindow, share: float) -> float | None:
    """Return the user's speed that a `share` (0..1) of the answers do not exceed, tok/s; None without answers."""
    rates = _user_rates(cut)
    return float(np.quantile(rates, share)) if len(rates) else None


def occupancy(cut: CellWindow) -> float | None:
    """Return system throughput x mean time per output token (Little's law): answers being written at once."""
    time_ms = time_per_output_token(cut)
    return None if time_ms is None else system_throughput(cut) * time_ms / MS_PER_S


def activity_occupancy(cut: CellWindow) -> float | None:
    """Return occupancy by `activity_throughput`: it times the mean time per output token (Little's law)."""
    rate, time_ms = activity_throughput(cut), time_per_output_token(cut)
    return None if rate is None or time_ms is None else rate * time_ms / MS_PER_S


def in_flight(cut: CellWindow) -> float:
    """Return requests in flight, from sending to end: their time inside the window / the window's length."""
    return _mean_open(cut, "start_s")


def answering(cut: CellWindow) -> float:
    """Return answers being written, from first token to end: their time inside the window / the window's length.

    `in_flight` less the requests that still wait for their first token; what `occupancy` must agree with.
    """
    return _mean_open(cut, "first_s")


def answering_by_law(cut: CellWindow) -> float | None:
    """Return decode throughput x mean time per output token, `answering` by Little's law; None if no answer ended."""
    time_ms = time_per_output_token(cut)
    if time_ms is None:
        return None
    return float(cut.delivered(cut.window).decode.tokens.sum()) / cut.window.length_s * time_ms / MS_PER_S


def _mean_open(cut: CellWindow, since: str) -> float:
    table = cut.requests
    # no end and no error: still in flight when the cell ended; a failed request held its slot to its last event
    end_s = table["end_s"].fillna(table["last_s"].fillna(table["start_s"]).where(table["error"].notna(), np.inf))
    open_s = cut.window.overlap_s(
        table[since].fillna(np.inf).to_numpy(dtype=np.float64), end_s.to_numpy(dtype=np.float64)
    )
    return open_s / cut.window.length_s


def _user_rates(cut: CellWindow) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    times_ms = times_per_output_token(cut)
    return MS_PER_S / times_ms[times_ms > 0]
