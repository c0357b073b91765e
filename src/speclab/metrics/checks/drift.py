"""Whether acceptance is the same throughout the window: an average over two servers' worth of it is neither's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from speclab.metrics.checks.base import Band, Check
from speclab.metrics.window import CellWindow

MOVE = Band(0.05, 0.10)
CUTS = (0.25, 0.5, 0.75)
"""Where the window is cut in two, as shares of it: a change near an end is a small part of either half."""
WARNS_AT, FAILS_AT = 0.05, 0.001
"""How often chance alone may give a cell a WARN or a FAIL: a lab has hundreds of cells, few of which may fail for
nothing."""
READINGS_TO_TELL = 8


def acceptance_check(cut: CellWindow) -> Check | None:
    """Hold tokens per step before a moment of the window against those after it, for each of `CUTS`.

    What chance makes is taken from the scatter between answers (a ratio's error over clusters, Student's t): the steps
    of one text are alike, and one text is accepted unlike another. Where every event holds one token, the counters'
    readings stand in for answers. The largest move beyond chance counts, and chance has been asked once for each cut.
    """
    if cut.record.asked.speculation is None:
        return None
    name = "acceptance holds"
    made = [found for share in CUTS if (found := _across(cut, share)) is not None]
    if not made:
        return Check(name, "WARN", None, MOVE.passes, "too few answers or readings on either side to tell")
    from scipy import stats  # takes half a second, and most commands do not come here

    graded: list[Check] = []
    for move, error, freedom in made:
        sizes = (float(stats.t.isf(level / 2 / len(made), freedom)) * error for level in (WARNS_AT, FAILS_AT))
        may_move, must_have_moved = sizes
        beyond = abs(move) > MOVE.fails and abs(move) > must_have_moved
        verdict = MOVE.grade(move) if beyond else "WARN" if abs(move) > max(MOVE.passes, may_move) else "PASS"
        reason = f"tokens per step move by {move:+.1%} within the window, chance alone gives {may_move:.1%}"
        graded.append(Check(name, verdict, move, MOVE.passes, reason))
    return max(graded, key=lambda check: (("PASS", "WARN", "FAIL").index(check.verdict), abs(check.value or 0.0)))


def _across(cut: CellWindow, share: float) -> tuple[float, float, int] | None:
    """Return the relative move of tokens per step across a cut of the window, its error, and degrees of freedom."""
    at_s = cut.window.opens_s + share * cut.window.length_s
    decode = cut.decode
    if len(decode) and decode.tokens.max() > 1:
        after = decode.time_s >= at_s
        rows = len(cut.requests)
        sides = [
            (np.bincount(decode.row[side], weights=decode.tokens[side], minlength=rows).astype(np.float64),
             np.bincount(decode.row[side], minlength=rows).astype(np.float64))
            for side in (~after, after)
        ]  # fmt: skip
    else:
        sides = _by_readings(cut, at_s)
    ratios = [ratio for tokens, steps in sides if (ratio := _ratio(tokens, steps)) is not None]
    if len(ratios) < 2:
        return None
    (before, before_error, n), (later, later_error, m) = ratios
    move = later / before - 1
    return move, (1 + move) * float(np.hypot(before_error / before, later_error / later)), n + m - 2


def _by_readings(cut: CellWindow, at_s: float) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return 1 + accepted a draft from reading to reading, as sums over and under, before a moment and after it."""
    known = [
        (reading.at_s, reading.drafts, reading.accepted_tokens)
        for reading in cut.record.readings
        if reading.drafts is not None and reading.accepted_tokens is not None
    ]
    if len(known) < READINGS_TO_TELL:
        return []
    table = np.array(known)
    drafts, accepted = np.diff(table[:, 1]), np.diff(table[:, 2])
    after = table[:-1, 0] >= at_s
    return [(drafts[side] + accepted[side], drafts[side]) for side in (~after, after)]


def _ratio(over: NDArray[np.float64], under: NDArray[np.float64]) -> tuple[float, float, int] | None:
    """Return a ratio of sums over clusters with its standard error and how many there are; None with fewer than two."""
    there = under > 0
    over, under, n = over[there], under[there], int(there.sum())
    if n < 2:
        return None
    ratio = float(over.sum() / under.sum())
    error = float(np.sqrt(((over - ratio * under) ** 2).sum() * n / (n - 1)) / under.sum())
    return ratio, error, n
