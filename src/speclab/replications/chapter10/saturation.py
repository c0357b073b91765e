"""One A100 filled up: where checking drafts is bound by compute, speculation loses throughput.

Two variants that the source lacks separate the causes of the loss: one speculates in small passes only, the other in
none, so that it pays only for the drafter's reading of prompts and its share of memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from speclab.config import validated
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Fleet
from speclab.replications.chapter10.fleet.metrics import at_load, throughput
from speclab.replications.chapter10.fleet.simulate import serve
from speclab.replications.chapter10.fleet.workload import FleetWorkload, Length, draw
from speclab.replications.chapter10.presets import ALPHA, SEED

RATES = (0.5, 4.0, 16.0, 64.0)
REQUESTS = 600
CUT_OFF_ROWS = 128
"""Rows from which the third variant decodes without drafts."""

_WORKLOAD = FleetWorkload(name="Poisson", new_input=Length(mean=1024, cv=0.5), output=Length(mean=256, cv=0.5))
_FLEET = Fleet(device="a100-sxm", max_rows=512)


def saturation(rates: Sequence[float] = RATES, cut_off_rows: int = CUT_OFF_ROWS) -> pd.DataFrame:
    """Return throughput with and without speculation by load: Llama 3 8B on one A100, MTP head, k 3.

    Parameters
    ----------
    rates : sequence of float
        Requests per second.
    cut_off_rows : int
        The cut-off of the third variant.

    Returns
    -------
    pd.DataFrame
        ``rate, off_tok_s, on_tok_s, ratio, off_tpot_p50_ms, on_tpot_p50_ms, draft_share, off_itl_p99_ms,
        on_itl_p99_ms, off_ttft_p50_s, on_ttft_p50_s``; ``cut_off_rows, cut_off_tok_s, cut_off_ratio,
        cut_off_tpot_p50_ms``; ``unused_tok_s, unused_ratio``, where the drafter reads prompts and no pass speculates.
        Throughput is over the whole run.
    """
    drafts = {"drafter": "mtp-head-8b", "k": 3, "alpha": ALPHA}
    variants = {
        "off": None,
        "on": validated(AssumedSpeculation, drafts),
        "cut_off": validated(AssumedSpeculation, {**drafts, "below_rows": cut_off_rows}),
        "unused": validated(AssumedSpeculation, {**drafts, "below_rows": 1}),
    }
    rows = []
    for rate in rates:
        requests = draw(_WORKLOAD, rate, SEED, REQUESTS)
        row: dict[str, float] = {"rate": rate}
        for variant, speculation in variants.items():
            served = serve(_FLEET.model_copy(update={"speculation": speculation}), requests)
            metrics = at_load(served)
            row[f"{variant}_tok_s"] = throughput(served, saturated=True)[1]
            row[f"{variant}_tpot_p50_ms"] = metrics["tpot_p50_s"] * 1e3
            row[f"{variant}_itl_p99_ms"] = metrics["itl_p99_s"] * 1e3
            row[f"{variant}_ttft_p50_s"] = metrics["ttft_p50_s"]
            if variant == "on":
                row["draft_share"] = metrics["draft_share"]
        row["ratio"] = row["on_tok_s"] / row["off_tok_s"]
        row["cut_off_rows"] = cut_off_rows
        row["cut_off_ratio"] = row["cut_off_tok_s"] / row["off_tok_s"]
        row["unused_ratio"] = row["unused_tok_s"] / row["off_tok_s"]
        rows.append(row)
    return pd.DataFrame(rows)[_COLUMNS]


_COLUMNS = [
    "rate",
    "off_tok_s",
    "on_tok_s",
    "ratio",
    "off_tpot_p50_ms",
    "on_tpot_p50_ms",
    "draft_share",
    "off_itl_p99_ms",
    "on_itl_p99_ms",
    "off_ttft_p50_s",
    "on_ttft_p50_s",
    "cut_off_rows",
    "cut_off_tok_s",
    "cut_off_ratio",
    "cut_off_tpot_p50_ms",
    "unused_tok_s",
    "unused_ratio",
]
