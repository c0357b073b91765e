from __future__ import annotations

import numpy as np
import pytest

from speclab.engines.base import Reading
from speclab.metrics.blocks import COLUMNS, blocks
from speclab.metrics.summary import of
from speclab.metrics.window import cut


@pytest.fixture
def cell(request_row, make_cell):
    """Two answers of 2-token steps in a window of 10 s: 0.5 s a step up to 5 s, 1 s from there on."""
    first = request_row(0.0, [(0.5 + 0.5 * step, 1 if step == 0 else 2) for step in range(9)])
    second = request_row(5.0, [(6.0 + step, 1 if step == 0 else 2) for step in range(4)])
    readings = [
        Reading(at_s=float(at), drafts=float(4 * at), accepted_tokens=float(2 * at), generation_tokens=float(at))
        for at in range(11)
    ]
    return make_cell([first, second], window_s=(0.0, 10.0), readings=readings, k=2)


def test_blocks_by_hand(cell):
    table = blocks(cut(cell), 2)
    assert table.columns.tolist() == list(COLUMNS)
    assert table["seconds"].tolist() == [5.0, 5.0]
    # events at 0.5, 1.0, ..., 4.5: 1 + 8 x 2 tokens; then at 6, 7, 8, 9: 1 + 3 x 2
    assert table["tokens"].tolist() == [17.0, 7.0]
    assert table["decode_tokens"].tolist() == [16.0, 6.0]
    assert table["steps"].tolist() == [8.0, 3.0]
    assert table["gap_ms"].tolist() == pytest.approx([8 * 500.0, 3 * 1000.0])
    # each answer: tokens - 1 over the time from its first to its last
    assert table["answers"].tolist() == [1.0, 1.0]
    assert table["answer_tokens"].tolist() == [16.0, 6.0]
    assert table["answer_ms"].tolist() == pytest.approx([4000.0, 3000.0])
    assert table["answer_rates"].tolist() == pytest.approx([4.0, 2.0])
    assert table["drafts"].tolist() == [20.0, 20.0]
    assert table["accepted"].tolist() == [10.0, 10.0]


@pytest.mark.parametrize("count", [3, 7, 10])
def test_ratios_of_the_sums_are_the_cells_own_metrics(cell, count):
    made = of(cell)
    sums = blocks(cut(cell), count).sum()
    for metric, over, under in (
        ("system_throughput", "tokens", "seconds"),
        ("step_time", "gap_ms", "steps"),
        ("tokens_per_step", "decode_tokens", "steps"),
        ("ms_per_accepted_token", "gap_ms", "decode_tokens"),
        ("time_per_output_token", "answer_ms", "answer_tokens"),
        ("user_throughput", "answer_rates", "answers"),
    ):
        assert sums[over] / sums[under] == pytest.approx(made.row[metric]), metric


def test_a_server_without_counters_has_no_drafts(request_row, make_cell):
    view = cut(make_cell([request_row(0.0, [(1.0, 1), (2.0, 1)])], readings=[Reading(at_s=0.0), Reading(at_s=10.0)]))
    assert np.isnan(blocks(view)["drafts"]).all()
    assert blocks(view)["tokens"].sum() == 2
