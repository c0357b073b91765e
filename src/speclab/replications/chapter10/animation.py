"""Two requests on one H100, pass by pass: what the page's animation shows, recorded for a replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from speclab.replications.chapter10.fleet.draws import Bursts
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Fleet
from speclab.replications.chapter10.fleet.metrics import at_capacity, at_load
from speclab.replications.chapter10.fleet.served import Served
from speclab.replications.chapter10.fleet.simulate import serve
from speclab.replications.chapter10.fleet.workload import Requests

VARIANTS: dict[str, AssumedSpeculation | None] = {
    "off": None,
    "gamma-3-alpha-0.7": AssumedSpeculation(drafter="mtp-head-8b", k=3, alpha=0.7),
    "gamma-5-alpha-0.8": AssumedSpeculation(drafter="mtp-head-8b", k=5, alpha=0.8),
    "gamma-3-alpha-0.4": AssumedSpeculation(drafter="mtp-head-8b", k=3, alpha=0.4),
}
"""What the selector offers."""

REQUESTS = Requests(
    prompt=np.array([512, 384]),
    output=np.array([40, 40]),
    arrival_s=np.array([0.0, 0.001]),
    think_s=np.array([0.0, 0.0]),
)


def animation() -> pd.DataFrame:
    """Return a recording of each variant.

    Returns
    -------
    pd.DataFrame
        ``variant, k, alpha, tokens_per_pass, closed_form_tokens_per_pass, ttft_p50_ms, ttft_p99_ms, tpot_p50_ms,
        tpot_p99_ms, itl_p99_ms, horizon_s, j_per_tok``, and lists: ``kept`` (of each request, tokens of each decode
        pass), ``requests`` (``request, arrival_s, prompt, output, first_s, finish_s``) and ``passes`` in order of time
        (``kind`` prefill or decode, ``start_s, duration_s, draft_part_s``, and ``rows``, each ``request, drafted,
        accepted, kept, emitted``: `accepted` before the answer's end cuts it off, `emitted` after the pass). Alpha is
        null, and k 0, where nothing is drafted.
    """
    return pd.DataFrame([_recording(variant, drafts) for variant, drafts in VARIANTS.items()])


def _recording(variant: str, drafts: AssumedSpeculation | None) -> dict[str, Any]:
    fleet = Fleet(speculation=drafts)
    bursts = [fleet.bursts(request, int(output) - 1) for request, output in enumerate(REQUESTS.output)]
    served = serve(fleet, REQUESTS, bursts)
    metrics = at_load(served)
    milliseconds = {
        f"{name}_ms": metrics[f"{name}_s"] * 1e3 for name in ("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "itl_p99")
    }
    return {
        "variant": variant,
        "k": 0 if drafts is None else drafts.k,
        "alpha": None if drafts is None else drafts.alpha,
        "tokens_per_pass": metrics["tokens_per_pass"],
        "closed_form_tokens_per_pass": 1.0 if drafts is None else drafts.tokens_per_pass,
        **milliseconds,
        "horizon_s": served.horizon_s,
        "j_per_tok": at_capacity(served, fleet, saturated=True)["j_per_tok"],
        "kept": [burst.kept.tolist() for burst in bursts],
        "requests": [
            {
                "request": request,
                "arrival_s": float(REQUESTS.arrival_s[request]),
                "prompt": int(REQUESTS.prompt[request]),
                "output": int(REQUESTS.output[request]),
                "first_s": float(served.first_s[request]),
                "finish_s": float(served.finish_s[request]),
            }
            for request in range(len(REQUESTS))
        ],
        "passes": sorted([*_prefills(served), *_decodes(served, bursts, drafts)], key=lambda pass_: pass_["start_s"]),
    }


def _prefills(served: Served) -> list[dict[str, Any]]:
    passes = served.by_instance[0]
    return [
        {
            "kind": "prefill",
            "start_s": start_s,
            "duration_s": end_s - start_s,
            "draft_part_s": drafting_s,
            "rows": [
                {"request": request, "drafted": 0, "accepted": 0, "kept": 1, "emitted": 1}
                for request in np.flatnonzero(served.first_s == end_s).tolist()
            ],
        }
        for start_s, end_s, drafting_s in zip(
            passes.prefill_start_s, passes.prefill_end_s, passes.prefill_drafting_s, strict=True
        )
    ]


def _decodes(served: Served, bursts: list[Bursts], drafts: AssumedSpeculation | None) -> list[dict[str, Any]]:
    passes = served.by_instance[0]
    return [
        {
            "kind": "decode",
            "start_s": start_s,
            "duration_s": end_s - start_s,
            "draft_part_s": drafting_s,
            "rows": [
                {
                    "request": request,
                    "drafted": 0 if drafts is None else drafts.k,
                    "accepted": int(burst.accepted[done]),
                    "kept": int(burst.kept[done]),
                    "emitted": 1 + int(burst.kept[: done + 1].sum()),
                }
                for request, burst in enumerate(bursts)
                for done in [number - int(served.first_pass[request])]
                if 0 <= done < served.passes[request]
            ],
        }
        for number, (start_s, end_s, drafting_s) in enumerate(
            zip(passes.start_s, passes.end_s, passes.drafting_s, strict=True)
        )
    ]
