from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speclab.engines.simulated_answers import (
    CONTEXT,
    DRAFTED,
    DRAFTED_CONTEXT,
    FIRST_POSITION,
    GENERATED,
    PROMPT,
    ROWS,
    Writer,
    answer_length,
)
from speclab.lab import Answers, Sampling

FIXED = Answers(mean_tokens=100, cv=0)


def test_answer_lengths_have_the_mean_and_spread_asked_for() -> None:
    lengths = np.array([answer_length(Answers(mean_tokens=400, cv=0.5), 9, "chat", f"p{i}") for i in range(4000)])
    assert lengths.mean() == pytest.approx(400, abs=4 * 200 / 4000**0.5)
    assert lengths.std() / lengths.mean() == pytest.approx(0.5, abs=0.05)
    assert lengths.min() >= 1


def test_an_answer_length_is_its_own_and_stable() -> None:
    answers = Answers(mean_tokens=400, cv=0.5)
    assert answer_length(answers, 9, "chat", "chat/07") == answer_length(answers, 9, "chat", "chat/07")
    others = {
        answer_length(answers, seed, workload, "chat/07") for seed in (9, 10) for workload in ("chat", "revision")
    }
    assert len(others) == 4
    assert answer_length(FIXED, 1, "chat", "x") == 100


def test_an_answer_by_hand() -> None:
    # k = 2, always drafted, always accepted: the first token, then bursts of 3 cut at 8 tokens: 1 3 3 1
    writer = Writer(Answers(mean_tokens=8, cv=0), 9, "arm", "chat", marginal=(1.0, 1.0))
    written = writer.write("p", 50, Sampling())
    assert written.event_tokens.tolist() == [1, 3, 3, 1]
    assert written.finish_reason == "stop"
    assert written.steps[:, ROWS].tolist() == [0, 1, 1, 1]
    assert written.steps[:, PROMPT].tolist() == [50, 0, 0, 0]
    assert written.steps[:, CONTEXT].tolist() == [0, 51, 54, 57]
    assert written.steps[:, DRAFTED].tolist() == [0, 1, 1, 1]
    assert written.steps[:, DRAFTED_CONTEXT].tolist() == [0, 51, 54, 57]
    assert written.steps[:, FIRST_POSITION:].tolist() == [[0, 0], [1, 1], [1, 1], [1, 1]]  # counted before the cut


@pytest.mark.parametrize(
    ("sampling", "room", "tokens", "reason"),
    [
        (Sampling(max_tokens=512), None, 100, "stop"),
        (Sampling(max_tokens=100), None, 100, "stop"),
        (Sampling(max_tokens=99), None, 99, "length"),
        (Sampling(max_tokens=512), 60, 60, "length"),
        (Sampling(max_tokens=512, ignore_eos=True), None, 512, "length"),
        (Sampling(max_tokens=1), None, 1, "length"),
    ],
)
def test_where_an_answer_ends(sampling: Sampling, room: int | None, tokens: int, reason: str) -> None:
    written = Writer(FIXED, 9, "arm", "chat").write("p", 10, sampling, room)
    assert written.event_tokens.sum() == tokens
    assert len(written.event_tokens) == tokens  # without speculation one token a step
    assert written.finish_reason == reason


@given(
    length=st.integers(1, 600),
    survival=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    draft_rate=st.floats(0, 1),
    prompt=st.integers(1, 2000),
)
def test_laws_of_an_answer(length: int, survival: list[float], draft_rate: float, prompt: int) -> None:
    curve = tuple(sorted(survival, reverse=True))
    writer = Writer(Answers(mean_tokens=length, cv=0), 1, "a", "chat", marginal=curve, draft_rate=draft_rate)
    written = writer.write("p", prompt, Sampling(max_tokens=600))
    steps, tokens = written.steps, written.event_tokens
    assert tokens.sum() == length == steps[:, GENERATED].sum()
    assert tokens.min() >= 1
    assert tokens.max() <= len(curve) + 1
    accepted = steps[:, FIRST_POSITION:]
    assert (np.diff(accepted, axis=1) <= 0).all()  # a later position is accepted only after the earlier ones
    assert (accepted[:, 0] <= steps[:, DRAFTED]).all()
    assert (tokens[:-1] == 1 + accepted.sum(axis=1)[:-1]).all()  # all but the last burst are whole
    assert tokens[-1] <= 1 + accepted[-1].sum()
    assert (steps[1:, CONTEXT] == prompt + np.cumsum(tokens)[:-1]).all()


def test_the_nth_answer_to_a_prompt_is_the_same_whatever_was_sent_between() -> None:
    def writer() -> Writer:
        return Writer(FIXED, 9, "arm", "chat", marginal=(0.6, 0.3))

    alone, mixed = writer(), writer()
    first = [alone.write("a", 10, Sampling()).event_tokens.tolist() for _ in range(2)]
    second = []
    for name in ("b", "a", "b", "b", "a"):
        tokens = mixed.write(name, 10, Sampling()).event_tokens.tolist()
        if name == "a":
            second.append(tokens)
    assert first == second
    assert first[0] != first[1]


def test_a_seed_key_changes_the_draws_and_not_the_lengths() -> None:
    answers = Answers(mean_tokens=200, cv=0.5)
    one, other = (Writer(answers, 9, "arm", "chat", key, marginal=(0.6, 0.3)) for key in ("", "r1"))
    a, b = one.write("p", 10, Sampling()), other.write("p", 10, Sampling())
    assert a.event_tokens.sum() == b.event_tokens.sum()
    assert a.event_tokens.tolist() != b.event_tokens.tolist()
