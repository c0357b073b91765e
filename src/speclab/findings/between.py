"""Checks of an arm's cell that need the baseline's beside it: the same prompts must get the same answers.

Every method of speculation claims to leave the answers as they are. An arm whose answers are shorter, empty or other
ones does less work, or other work, than its baseline, and its speed-up compares nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict

import numpy as np
import pandas as pd

from speclab.findings.places import BESIDE
from speclab.lab import BASELINE
from speclab.metrics.acceptance import wilson
from speclab.metrics.checks.base import ALL, Band, Check, CheckEntry, Verdict

LENGTH = Band(0.10, 0.25)
WARNS_AT, FAILS_AT = 0.05, 0.001
"""How often chance alone may give a cell a WARN or a FAIL on its answers' length."""
FEWEST_PROMPTS = 3
EMPTY = Band(0.01, 0.05)
EQUAL, EQUAL_FAILS = 0.90, 0.50

OF_AN_ARM = (
    CheckEntry(
        "tokens per prompt",
        "are the answers to the same prompts as long as the baseline's? The mean over prompts of the ratio",
        f"within {LENGTH.passes:.0%}, or within what chance makes",
        f"beyond {LENGTH.fails:.0%}, and beyond what chance makes in {FAILS_AT:.1%} of cells",
        "read both arms' answers to one prompt: a chat template, a stop token or another model makes them shorter",
        ALL,
    ),
    CheckEntry(
        "empty answers",
        "does the arm give more answers of one token or none than the baseline? As a share of all answers",
        f"at most {EMPTY.passes:.0%} more",
        f"more than {EMPTY.fails:.0%} more",
        "read the server's log and one such answer: it ends them at once",
        ALL,
    ),
    CheckEntry(
        "same text",
        "at temperature 0, do the answers to the same prompts begin with the same characters as the baseline's? Later "
        "ones may part where two tokens are nearly equal. Not asked where acceptance is forced",
        f"at least {EQUAL:.0%} of them",
        f"fewer than {EQUAL_FAILS:.0%}, beyond what so few prompts can show",
        "run `speclab text-check LAB`, and compare the arm's model, quantization and sampling with the baseline's",
        ALL,
    ),
)
"""Checks of an arm's cell beside the baseline's of the same place and repeat."""

_KEYS = [*BESIDE, "repeat"]
COLUMNS = ["arm", *_KEYS, "check", "verdict", "value", "limit", "reason"]


def checks(cells: pd.DataFrame, answers: pd.DataFrame | None) -> pd.DataFrame:
    """Return the checks of each arm's cell beside the baseline's.

    Parameters
    ----------
    cells : pd.DataFrame
        Rows of `speclab.metrics.summary.Summary`.
    answers : pd.DataFrame, optional
        Likewise; without them only empty answers can be counted.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`; no row where one of the two did not run, or is missing.
    """
    ran = cells[cells["status"] != "failed"]
    baselines = {tuple(row[name] for name in _KEYS): row for row in _rows(ran[ran["arm"] == BASELINE])}
    by_cell = _by_cell(answers)
    made = []
    for row in _rows(ran[ran["arm"] != BASELINE]):
        place = tuple(row[name] for name in _KEYS)
        if place not in baselines:
            continue
        ours, theirs = (by_cell.get((arm, *place)) for arm in (row["arm"], BASELINE))
        for check in _of_pair(row, baselines[place], ours, theirs):
            made.append({"arm": row["arm"], **dict(zip(_KEYS, place, strict=True)), **asdict(check)})
    return pd.DataFrame(made, columns=COLUMNS)


def judged(cells: pd.DataFrame, answers: pd.DataFrame | None) -> pd.DataFrame:
    """Return cells whose ``failed_checks`` also name those of `checks` that failed."""
    bad = checks(cells, answers).query("verdict == 'FAIL'")
    if bad.empty:
        return cells
    keys = ["arm", *_KEYS]
    more = bad.groupby(keys)["check"].agg("; ".join).rename("more")
    joined = cells.join(more, on=keys)
    names = [
        "; ".join(part for part in (own, new) if isinstance(part, str)) or None
        for own, new in zip(joined["failed_checks"], joined["more"], strict=True)
    ]
    return cells.assign(failed_checks=pd.Series(names, index=cells.index, dtype=object))


def _of_pair(
    row: Mapping[Hashable, object],
    baseline: Mapping[Hashable, object],
    ours: pd.DataFrame | None,
    theirs: pd.DataFrame | None,
) -> Iterator[Check]:
    if (empty := _empty(row, baseline)) is not None:
        yield empty
    if ours is None or theirs is None:
        return
    both = ours.join(theirs.add_suffix("_baseline"), how="inner")
    yield _length(both)
    if "opening" in ours and "opening" in theirs:
        known = both.dropna(subset=["opening", "opening_baseline"])
        if len(known):
            yield _text(known)


def _length(both: pd.DataFrame) -> Check:
    name, n = "tokens per prompt", len(both)
    if not n:
        return Check(name, "WARN", None, LENGTH.passes, "no prompt was answered whole in both")
    ratio = np.log((both["tokens"] / both["answers"]) / (both["tokens_baseline"] / both["answers_baseline"])).to_numpy(
        np.float64
    )
    move = float(np.expm1(ratio.mean()))
    reason = f"answers {move:+.1%} as to tokens, over {n} prompts that both answered"
    if n < FEWEST_PROMPTS:
        verdict = LENGTH.grade(move)
        return Check(name, "WARN" if verdict == "FAIL" else verdict, move, LENGTH.passes, f"{reason}, too few to tell")
    from scipy import stats  # takes half a second, and most commands do not come here

    error = float(ratio.std(ddof=1)) / np.sqrt(n)
    may_move, must_have_moved = (float(stats.t.isf(level / 2, n - 1)) * error for level in (WARNS_AT, FAILS_AT))
    size, reason = abs(float(ratio.mean())), f"{reason}; chance alone gives {np.expm1(may_move):.1%}"
    if size <= may_move or abs(move) <= LENGTH.passes:
        return Check(name, "PASS", move, LENGTH.passes, reason)
    verdict = LENGTH.grade(move) if size > must_have_moved else "WARN"
    return Check(name, verdict, move, LENGTH.passes, reason)


def _empty(row: Mapping[Hashable, object], baseline: Mapping[Hashable, object]) -> Check | None:
    counts = [side.get(name) for side in (row, baseline) for name in ("one_token_answers", "ended_requests")]
    if any(pd.isna(count) for count in counts):  # type: ignore[call-overload]
        return None
    empty, ended, empty_baseline, ended_baseline = (float(str(count)) for count in counts)
    if not ended or not ended_baseline:
        return Check("empty answers", "WARN", None, EMPTY.passes, "no answer ended inside the window of one of the two")
    more = empty / ended - empty_baseline / ended_baseline
    reason = f"{empty:.0f} of {ended:.0f} answers hold one token or none, the baseline's {empty_baseline:.0f} of "
    reason += f"{ended_baseline:.0f}"
    return Check("empty answers", EMPTY.grade(max(0.0, more)), more, EMPTY.passes, reason)


def _text(known: pd.DataFrame) -> Check:
    n, equal = len(known), int((known["opening"] == known["opening_baseline"]).sum())
    share, _, high = (float(part[0]) for part in wilson(np.array([float(equal)]), np.array([float(n)])))
    verdict: Verdict = "PASS" if share >= EQUAL else "FAIL" if high < EQUAL_FAILS else "WARN"
    return Check("same text", verdict, share, EQUAL, f"{equal} of {n} answers begin as the baseline's do")


def _by_cell(answers: pd.DataFrame | None) -> dict[tuple[object, ...], pd.DataFrame]:
    if answers is None or answers.empty:
        return {}
    return {
        key: part.set_index("prompt_id")[[name for name in ("answers", "tokens", "opening") if name in part]]
        for key, part in answers.groupby(["arm", *_KEYS], sort=False)
    }


def _rows(cells: pd.DataFrame) -> list[dict[Hashable, object]]:
    return list(cells.to_dict("records"))
