from __future__ import annotations

from speclab.metrics import summary
from speclab.metrics.answers import COLUMNS, answers_by_prompt
from speclab.metrics.window import cut


def test_steps_and_tokens_of_each_prompt_without_the_first_token(request_row, make_cell):
    rows = [
        request_row(0.0, [(0.5, 1), (0.6, 3), (0.7, 2)]),
        request_row(1.0, [(1.5, 1), (1.6, 4)]),
        request_row(2.0, [(2.5, 1), (2.6, 1)], prompt_id="chat/01"),
    ]
    table = answers_by_prompt(cut(make_cell(rows, k=3)))
    assert table.columns.tolist() == list(COLUMNS)
    assert table[["prompt_id", "answers", "steps", "tokens"]].to_numpy().tolist() == [
        ["chat/00", 2, 3, 9],
        ["chat/01", 1, 1, 1],
    ]


def test_the_parts_of_an_answer_by_hand(request_row, make_cell):
    # 10 decode tokens: steps begin at 0, 3, 4 | 5, 7 | 8: before 40% are those at 0 and 3, from 80% on that at 8
    tokens = [1, 3, 1, 1, 2, 1, 2]
    row = request_row(0.0, [(0.5 + 0.1 * step, count) for step, count in enumerate(tokens)], prompt_tokens=77)
    parts = answers_by_prompt(cut(make_cell([row, row], k=3))).iloc[0]
    assert (parts["early_steps"], parts["early_tokens"]) == (2 * 2, 2 * 4)
    assert (parts["late_steps"], parts["late_tokens"]) == (2 * 3, 2 * 4)
    assert parts["prompt_tokens"] == 77


def test_only_whole_measured_answers_count_wherever_the_window_lies(request_row, make_cell):
    rows = [
        request_row(0.0, [(0.5, 1), (0.6, 2)], prompt_id="before the window"),
        request_row(0.0, [(0.5, 1), (0.6, 2)], prompt_id="a warm-up", warm_up=True),
        request_row(0.0, [(0.5, 1), (0.6, 2)], prompt_id="cut off", ended=False),
        request_row(0.0, [(0.5, 1), (0.6, 2)], prompt_id="an error", error="gone"),
        request_row(0.0, [(0.5, 1)], prompt_id="one token"),
    ]
    table = answers_by_prompt(cut(make_cell(rows, window_s=(5.0, 9.0))))
    assert table["prompt_id"].tolist() == ["before the window"]


def test_a_cell_without_requests_has_no_answers(make_cell):
    assert answers_by_prompt(cut(make_cell([]))).empty


def test_answers_carry_the_cells_keys(request_row, make_cell):
    answers = summary.of(make_cell([request_row(0.0, [(0.5, 1), (0.6, 2)])])).answers
    assert answers.columns.tolist() == ["arm", "workload", "concurrency", "repeat", "source", *COLUMNS]
