"""Which places hours buy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from known_pilots import made_cell, pilot_of

from speclab.budget.outlook import outlook
from speclab.budget.report import headline
from speclab.budget.spend import FEWEST_TEXTS, alike, everything, minutes, missing, within
from speclab.lab import BASELINE
from speclab.results import Results

CHEAP = made_cell("cheap", steps=0.005)
DEAR = made_cell("dear", concurrency=16, steps=0.4)
HOPELESS = made_cell("hopeless", concurrency=4, texts=0.5)
PILOT = pilot_of(CHEAP, DEAR, HOPELESS)


def names(speed_ups: list[tuple[str, str, int]]) -> set[str]:
    return {arm for arm, _, _ in speed_ups}


def test_everything_that_can_be_resolved_is_and_the_bill_adds_up() -> None:
    made = everything(PILOT, 0.05)
    assert names(made.speed_ups) == {"cheap", "dear"}
    starts_h = made.repeats * 30 * 3 / 3600  # baseline, cheap, dear
    assert made.hours == pytest.approx(sum(minutes(made).values()) / 60 + starts_h)
    assert all(window_s == int(window_s) for part in made.shares.values() for window_s in part.window_s.values())


def test_a_budget_is_kept_and_cheap_places_come_first() -> None:
    whole = everything(PILOT, 0.05)
    made = within(PILOT, 0.05, whole.hours / 2)
    assert names(made.speed_ups) == {"cheap"}
    assert made.hours <= whole.hours / 2
    assert within(PILOT, 0.05, 0.01).speed_ups == []
    assert names(within(PILOT, 0.05, whole.hours * 1.01).speed_ups) == {"cheap", "dear"}


def test_more_hours_never_buy_less() -> None:
    counts = [len(within(PILOT, 0.05, hours).speed_ups) for hours in (0.05, 0.2, 0.5, 1, 2, 4, 8)]
    assert counts == sorted(counts)
    assert counts[-1] == 2


def test_what_is_left_out_says_what_it_needs() -> None:
    rows = {row.arm: row for row in missing(within(PILOT, 0.05, everything(PILOT, 0.05).hours / 2))}
    assert set(rows) == {"dear", "hopeless"}
    assert 0 < rows["dear"].hours < math.inf
    assert rows["hopeless"].hours == math.inf
    assert rows["hopeless"].best > 0.05
    # Student's factor of twelve repeats is 1.985: 0.5 over the variance that is allowed
    assert rows["hopeless"].prompts == pytest.approx(0.5 / (np.arcsinh(0.05) / 1.985) ** 2, rel=1e-3)


def test_so_many_prompts_do_resolve_it() -> None:
    needed = math.ceil(missing(everything(PILOT, 0.05))[-1].prompts)
    with_more = pilot_of(made_cell("hopeless", texts=0.5, prompts=needed + 60))
    assert names(everything(with_more, 0.05).speed_ups) == {"hopeless"}


def test_a_window_holds_a_dozen_texts_over_its_repeats() -> None:
    made = everything(pilot_of(made_cell(steps=1e-6, answers_per_s=0.1)), 0.2)
    (part,) = made.shares.values()
    assert made.repeats * part.window_s["arm"] * 0.1 >= FEWEST_TEXTS


def test_the_same_hours_for_all_alike_are_used_up_at_one_half_width() -> None:
    sides = {CHEAP.where: frozenset(["cheap"]), DEAR.where: frozenset(["dear"])}
    made = alike(PILOT, 2.0, sides, (4,))
    assert made is not None
    assert 1.9 < made.hours <= 2.0
    assert alike(PILOT, 0.01, sides, (4,)) is None


def test_an_outlook_says_it_in_a_sentence(small_results: Results) -> None:
    made = outlook(PILOT, 0.05, None, small_results.findings)
    text = headline(made)
    assert "half-widths of 5% at 2 of 3 speed-ups" in text
    assert "1 cannot reach it at any length" in text
    tight = outlook(PILOT, 0.05, made.spending.hours / 2, small_results.findings)
    assert "1 more need more time: the cheapest, dear chat 16" in headline(tight)
    assert tight.next_hour is not None
    assert ("dear", "chat", 16) in tight.next_hour.gained
    assert (BASELINE, "chat", 16) in tight.next_hour.minutes
    assert headline(outlook(PILOT, 0.05, 0.01, small_results.findings)).startswith(
        "1 min buys a half-width of 5% at none"
    )
