from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from speclab.book import widget
from speclab.replications.chapter10 import animation
from speclab.replications.chapter10.widgets import animation as recording


def row(request: int, drafted: int, accepted: int, kept: int, emitted: int) -> dict[str, int]:
    return {"request": request, "drafted": drafted, "accepted": accepted, "kept": kept, "emitted": emitted}


def one_pass(kind: str, start_s: float, *rows: dict[str, int]) -> dict[str, Any]:
    return {"kind": kind, "start_s": start_s, "duration_s": 0.008, "draft_part_s": 0.002, "rows": list(rows)}


REQUESTS = [
    {"request": 0, "arrival_s": 0.0, "prompt": 512, "output": 8, "first_s": 0.008, "finish_s": 0.032},
    {"request": 1, "arrival_s": 0.001, "prompt": 384, "output": 5, "first_s": 0.016, "finish_s": 0.032},
]
PASSES = [
    one_pass("prefill", 0.0, row(0, 0, 0, 1, 1)),
    one_pass("prefill", 0.008, row(1, 0, 0, 1, 1)),
    one_pass("decode", 0.016, row(0, 3, 1, 2, 3), row(1, 3, 0, 1, 2)),
    one_pass("decode", 0.024, row(0, 3, 3, 4, 7), row(1, 3, 2, 3, 5)),
    one_pass("decode", 0.032, row(0, 3, 3, 1, 8)),
]
VARIANTS = pd.DataFrame(
    [
        {
            "variant": "gamma-3-alpha-0.7", "k": 3, "alpha": 0.7, "tokens_per_pass": 2.2,
            "closed_form_tokens_per_pass": 2.533, "tpot_p99_ms": 3.1, "horizon_s": 0.04, "requests": REQUESTS,
            "passes": PASSES,
        }
    ]
)  # fmt: skip


def test_a_recording_holds_each_pass_in_milliseconds_and_what_is_out_after_it() -> None:
    made = recording.recording(VARIANTS, "gamma-3-alpha-0.7")
    (variant,) = made["variants"]
    assert variant["label"] == "3 drafts a pass, α = 0.7"
    assert variant["done_ms"] == pytest.approx(40.0)
    assert [each["out"] for each in variant["passes"]] == [[1, 0], [1, 1], [3, 2], [7, 5], [8, 5]]
    assert [each["start_ms"] for each in variant["passes"]] == pytest.approx([0.0, 8.0, 16.0, 24.0, 32.0])
    assert variant["passes"][2]["draft_ms"] == pytest.approx(2.0)
    assert variant["passes"][4]["rows"] == [{"request": 0, "drafted": 3, "accepted": 3, "kept": 1}]
    assert [request["output"] for request in made["requests"]] == [8, 5]
    assert widget.to_json(made).startswith('{"requests":[{"name":"Request 1","prompt":512')


def test_it_opens_where_one_row_keeps_all_and_another_loses_a_draft() -> None:
    assert recording.recording(VARIANTS, "gamma-3-alpha-0.7")["first"] == {"variant": "gamma-3-alpha-0.7", "step": 3}


@pytest.mark.parametrize(("passes", "step"), [(PASSES[:3], 2), ([*PASSES[:2], PASSES[4]], 2)])
def test_else_where_a_draft_is_lost_or_where_decoding_begins(passes: list[dict[str, Any]], step: int) -> None:
    assert recording.telling(passes) == step


def test_plain_decoding_is_off() -> None:
    assert recording.label(None, None) == recording.label(0, float("nan")) == "off"
    plain = {**VARIANTS.iloc[0], "variant": "off", "k": None, "alpha": None}
    made = recording.recording(pd.DataFrame([plain, *VARIANTS.to_dict("records")]), "gamma-3-alpha-0.7")
    assert [(each["label"], each["gamma"]) for each in made["variants"]] == [
        ("off", 0),
        ("3 drafts a pass, α = 0.7", 3),
    ]


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(LookupError, match="0 variants 'gamma-9'"):
        recording.recording(VARIANTS, "gamma-9")


def test_the_chapters_own_recording_ends_with_every_answer_whole() -> None:
    made = recording.recording(animation(), "gamma-3-alpha-0.7")
    assert made["variants"][0]["label"] == "off"
    for variant in made["variants"]:
        assert variant["passes"][-1]["out"] == [request["output"] for request in made["requests"]] == [40, 40]
    drafting = made["variants"][1]
    kept = [row["kept"] for each in drafting["passes"][2:] for row in each["rows"] if row["request"] == 0]
    assert kept == [4, 4, 4, 4, 1, 2, 2, 4, 2, 3, 1, 4, 2, 2]  # the source's animation
    assert drafting["passes"][0]["draft_ms"] == pytest.approx(1.4100, abs=5e-5)
