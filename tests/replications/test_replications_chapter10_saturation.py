from __future__ import annotations

import pytest

from speclab.errors import UserError
from speclab.replications.chapter10 import saturation


def test_saturation_as_the_source_prints_it() -> None:
    quiet, full = saturation(rates=(0.5, 16.0)).to_dict("records")
    assert (f"{quiet['off_tok_s']:.3f}", f"{quiet['on_tok_s']:.3f}") == ("122.763", "122.977")
    assert (f"{full['off_tok_s']:.3f}", f"{full['on_tok_s']:.3f}") == ("1951.412", "1813.935")
    assert f"{full['ratio']:.2f}" == "0.93"
    assert [f"{full[name]:.3f}" for name in ("off_tpot_p50_ms", "on_tpot_p50_ms")] == ["117.793", "133.460"]
    assert [f"{quiet[name]:.3f}" for name in ("off_tpot_p50_ms", "on_tpot_p50_ms")] == ["10.219", "5.193"]
    assert [f"{row['draft_share']:.1%}" for row in (quiet, full)] == ["20.6%", "8.9%"]
    assert [f"{full[name]:.0f}" for name in ("off_itl_p99_ms", "on_itl_p99_ms")] == ["464", "772"]
    assert [f"{full[name]:.2f}" for name in ("off_ttft_p50_s", "on_ttft_p50_s")] == ["8.75", "14.96"]
    # speculating in small passes only keeps the gain while it is quiet and most of the loss away when it is full; what
    # is left is the drafter's reading of prompts, which alone loses nearly as much as all of speculation
    assert quiet["cut_off_tok_s"] == quiet["on_tok_s"]
    assert full["ratio"] < full["unused_ratio"] < 0.94 < full["cut_off_ratio"] < 1


def test_a_cut_off_below_one_row_is_refused() -> None:
    with pytest.raises(UserError, match="below_rows: found 0"):
        saturation(rates=(0.5,), cut_off_rows=0)
