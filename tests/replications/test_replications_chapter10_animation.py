from __future__ import annotations

import json

import pandas as pd
import pytest

from speclab.replications.chapter10 import animation


@pytest.fixture(scope="module")
def recordings() -> pd.DataFrame:
    return animation().set_index("variant")


def test_the_page_s_variant_to_the_printed_digits(recordings: pd.DataFrame) -> None:
    row = recordings.loc["gamma-3-alpha-0.7"]
    assert f"{row.tokens_per_pass:.6f}" == "2.689655"
    assert (f"{row.ttft_p50_ms:.3f}", f"{row.ttft_p99_ms:.3f}") == ("21.938", "27.535")
    assert (f"{row.tpot_p50_ms:.4f}", f"{row.tpot_p99_ms:.5f}") == ("3.0646", "3.12285")
    assert (f"{row.itl_p99_ms:.3f}", f"{row.horizon_s:.6f}", f"{row.j_per_tok:.5f}") == (
        "10.673",
        "0.145853",
        "0.63393",
    )
    assert row.kept[0] == [4, 4, 4, 4, 1, 2, 2, 4, 2, 3, 1, 4, 2, 2]
    assert f"{recordings.loc['off'].tpot_p99_ms:.4f}" == "6.4345"
    assert list(recordings.index) == ["off", "gamma-3-alpha-0.7", "gamma-5-alpha-0.8", "gamma-3-alpha-0.4"]


def test_its_first_passes(recordings: pd.DataFrame) -> None:
    passes = recordings.loc["gamma-3-alpha-0.7"].passes[:3]
    assert [each["kind"] for each in passes] == ["prefill", "prefill", "decode"]
    milliseconds = [(each["duration_s"] * 1e3, each["draft_part_s"] * 1e3) for each in passes]
    assert [f"{whole:.4f} {drafts:.4f}" for whole, drafts in milliseconds[:2]] == ["16.2273 1.4100", "12.4215 1.0703"]
    assert [f"{value:.5f}" for value in milliseconds[2]] == ["7.81340", "1.66857"]


@pytest.mark.parametrize("variant", ["off", "gamma-3-alpha-0.7", "gamma-5-alpha-0.8", "gamma-3-alpha-0.4"])
def test_a_replay_ends_where_the_requests_do(recordings: pd.DataFrame, variant: str) -> None:
    row = recordings.loc[variant]
    written, kept = {0: 0, 1: 0}, {0: [], 1: []}
    for number, each in enumerate(row.passes):
        if number:
            before = row.passes[number - 1]
            assert each["start_s"] == pytest.approx(before["start_s"] + before["duration_s"])
        for part in each["rows"]:
            written[part["request"]] += part["kept"]
            assert part["emitted"] == written[part["request"]]
            assert part["kept"] <= part["accepted"] + 1
            assert part["accepted"] <= part["drafted"] == (row.k if each["kind"] == "decode" else 0)
            if each["kind"] == "decode":
                kept[part["request"]].append(part["kept"])
    assert written == {0: 40, 1: 40}
    assert list(kept.values()) == row.kept
    last = row.passes[-1]
    assert last["start_s"] + last["duration_s"] == pytest.approx(row.horizon_s)
    json.dumps([row.kept, row.requests, row.passes], allow_nan=False)
