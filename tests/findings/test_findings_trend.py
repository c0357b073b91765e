from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speclab.findings.long_table import findings
from speclab.findings.trend import COLUMNS, acceptance_over_answer, acceptance_over_prompt, acceptance_trend

ARM = "ngram-k8"


@pytest.fixture
def made(cell_row):
    """Return answers and cells from (prompt, concurrency, steps, tokens) and the concurrencies that failed a check."""

    def build(rows, failed=()):
        concurrencies = sorted({row[1] for row in rows})
        cells = pd.DataFrame([cell_row(ARM, c, failed_checks="usage" if c in failed else None) for c in concurrencies])
        answers = pd.DataFrame(rows, columns=["prompt_id", "concurrency", "steps", "tokens"])
        return answers.assign(arm=ARM, workload="chat", repeat=0, source=cells["source"].iloc[0], answers=1), cells

    return build


def test_a_known_fall_is_found_exactly(made):
    # each prompt has a level of its own and loses a tenth with each doubling: 0.9 x 0.9 - 1 over two of them
    rows = [
        (prompt, c, 100, 100 * level * 0.9 ** np.log2(c))
        for prompt, level in (("a", 3.0), ("b", 2.0), ("c", 1.5))
        for c in (1, 2, 4)
    ]
    row = acceptance_trend(*made(rows)).iloc[0]
    assert row[["value", "low", "high"]].tolist() == pytest.approx([-0.19] * 3)
    assert (row["n"], row["status"]) == (3, "ok")


def test_other_texts_in_a_fuller_batch_are_no_trend(made):
    # tokens per step over all answers fall from 2.0 to 1.4, and no prompt has moved
    same = [(prompt, c, 100, 200) for prompt in "abc" for c in (1, 4)]
    row = acceptance_trend(*made([*same, *((prompt, 4, 100, 110) for prompt in "defghij")])).iloc[0]
    assert row["value"] == pytest.approx(0.0)
    assert row["n"] == 3


def test_two_prompts_are_too_few(made):
    row = acceptance_trend(*made([(prompt, c, 10, 20) for prompt in "ab" for c in (1, 4)])).iloc[0]
    assert np.isnan(row["value"])
    assert (row["n"], row["status"]) == (2, "not resolved")


def test_cells_that_failed_a_check_have_no_say(made):
    rows = [(prompt, c, 100, tokens) for prompt in "abc" for c, tokens in ((1, 200), (2, 200), (4, 120))]
    assert acceptance_trend(*made(rows, failed={4})).iloc[0]["value"] == pytest.approx(0.0)
    alone = acceptance_trend(*made(rows, failed={2, 4})).iloc[0]
    assert (alone["status"], alone["n"]) == ("failed check", 0)


def test_no_answers_no_rows():
    assert acceptance_trend(pd.DataFrame(), pd.DataFrame()).columns.tolist() == COLUMNS


def test_the_baseline_has_no_trend(made, cell_row):
    answers, cells = made([(prompt, c, 10, 20) for prompt in "abc" for c in (1, 4)])
    baseline = pd.DataFrame([cell_row("baseline", c, system_throughput=1.0) for c in (1, 4)])
    both = pd.concat([answers, answers.assign(arm="baseline", steps=20)])
    cells = pd.concat([cells.assign(system_throughput=1.0), baseline])
    table = findings(cells, pd.DataFrame(), {"baseline": 0, ARM: 8}, both)
    trends = table[table["finding"] == "acceptance_trend"]
    assert trends["arm"].tolist() == [ARM]
    assert (trends["value"].iloc[0], trends["unit"].iloc[0]) == (pytest.approx(0.0), "ratio")


def test_the_interval_holds_no_change_nineteen_times_of_twenty(made):
    random = np.random.default_rng(9)
    held = 0
    for _ in range(200):
        levels = random.uniform(0.1, 0.7, size=12)
        rows = [
            (f"p{prompt}", c, steps, steps + random.binomial(steps, level))
            for prompt, level in enumerate(levels)
            for c in (1, 2, 4, 8, 16)
            if prompt < 3 * c or c > 2
            for steps in [int(random.integers(30, 90))]
        ]
        row = acceptance_trend(*made(rows)).iloc[0]
        held += row["low"] <= 0 <= row["high"]
    assert 180 <= held <= 198


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(levels=st.lists(st.floats(1.0, 8.0), min_size=3, max_size=3))
def test_how_easy_a_text_is_does_not_enter(made, levels):
    def trend(factors):
        tokens = {("a", 1): 210, ("a", 4): 200, ("b", 1): 300, ("b", 4): 330, ("c", 1): 150, ("c", 4): 120}
        factor = dict(zip("abc", factors, strict=True))
        return acceptance_trend(*made([(p, c, 100, n * factor[p]) for (p, c), n in tokens.items()])).iloc[0]

    here, at_one_level = trend(levels), trend([1.0, 1.0, 1.0])
    for bound in ("value", "low", "high"):
        assert here[bound] == pytest.approx(at_one_level[bound], rel=1e-9)


@pytest.fixture
def parts(cell_row):
    """Answers of one cell from (prompt tokens, steps, tokens, early steps and tokens, late steps and tokens)."""

    def build(rows):
        names = ["prompt_tokens", "steps", "tokens", "early_steps", "early_tokens", "late_steps", "late_tokens"]
        answers = pd.DataFrame(rows, columns=names).assign(arm=ARM, workload="chat", concurrency=1, repeat=0, answers=1)
        cells = pd.DataFrame([cell_row(ARM, 1)])
        answers["prompt_id"] = [f"p{index}" for index in range(len(rows))]
        return answers.assign(source=cells["source"].iloc[0]), cells

    return build


def test_a_fall_over_the_answer_is_found_exactly(parts):
    # whatever the level of a text, its late part brings nine tenths of its early part
    rows = [(100, 40, 80, 16, 16 * level, 20, 20 * level * 0.9) for level in (1.2, 2.0, 3.1)]
    row = acceptance_over_answer(*parts(rows)).iloc[0]
    assert row[["value", "low", "high"]].tolist() == pytest.approx([-0.1] * 3)
    assert (row["n"], row["status"]) == (3, "ok")


def test_over_the_answer_by_students_t(parts):
    # equal weights, changes of the logarithm 0.1, 0.2, 0.3: 0.2 +- 4.303 x 0.1 / sqrt(3)
    rows = [(100, 40, 80, 20, 20, 20, 20 * np.exp(change)) for change in (0.1, 0.2, 0.3)]
    row = acceptance_over_answer(*parts(rows)).iloc[0]
    margin = 4.303 * 0.1 / 3**0.5
    expected = [np.expm1(end) for end in (0.2, 0.2 - margin, 0.2 + margin)]
    assert row[["value", "low", "high"]].tolist() == pytest.approx(expected, abs=1e-3)


def test_a_fall_with_the_prompts_length_is_found_exactly(parts):
    # a tenth less with each doubling
    rows = [(2**n, 50, 100 * 0.9**n, 1, 1, 1, 1) for n in range(5, 10)]
    row = acceptance_over_prompt(*parts(rows)).iloc[0]
    assert row[["value", "low", "high"]].tolist() == pytest.approx([-0.1] * 3)
    assert row["n"] == 5


def test_prompts_of_one_length_say_nothing_about_it(parts):
    row = acceptance_over_prompt(*parts([(64, 50, 100, 1, 1, 1, 1)] * 5)).iloc[0]
    assert (row["status"], row["n"]) == ("not resolved", 5)
    assert np.isnan(row["value"])


def test_tables_without_the_parts_have_no_such_trend(made):
    answers, cells = made([(prompt, c, 10, 20) for prompt in "abc" for c in (1, 4)])
    assert acceptance_over_answer(answers, cells).empty
    assert len(acceptance_trend(answers, cells)) == 1
