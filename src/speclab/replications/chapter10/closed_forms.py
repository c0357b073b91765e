"""The closed forms of Leviathan et al. (arXiv:2211.17192 v2), their Table 1, and the simulator checked against them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Charges, Fleet
from speclab.replications.chapter10.fleet.metrics import at_load
from speclab.replications.chapter10.fleet.simulate import serve
from speclab.replications.chapter10.fleet.workload import FleetWorkload, Length, Requests, draw
from speclab.replications.chapter10.presets import SEED
from speclab.roofline.forward_pass import decode, prefill, verify
from speclab.roofline.speculation import operations_factor, speed_up, tokens_per_pass_flat
from speclab.roofline.step import Rows

TABLE_1 = ((0.6, 2), (0.7, 3), (0.8, 2), (0.8, 5), (0.9, 2), (0.9, 10))
"""alpha and k of the paper's Table 1."""

DRAWS = ((0.6, 2), (0.6, 4), (0.6, 6), (0.8, 2), (0.8, 4), (0.8, 6))
PAIRS = (
    ("llama-3-8b", "mtp-head-8b", 1),
    ("llama-3-8b", "llama-3.2-1b", 1),
    ("llama-3-70b", "mtp-head-70b", 4),
    ("llama-3-70b", "llama-3.2-1b", 4),
)
"""Target, drafter, and the GPUs that serve them, without all-reduces."""

ACCEPTANCES = ((0.7, 3), (0.8, 5))
CONTEXT = 1024
"""Tokens of the one row whose passes give the cost of drafting in the theorems."""

REQUESTS, RATE = 150, 0.2
SHORT_PROMPT = 16

_LENGTH = Length(mean=512, cv=0.5)
_QUIET = FleetWorkload(name="Poisson, far from full", new_input=_LENGTH, output=_LENGTH)


def table1() -> pd.DataFrame:
    """Return the paper's Table 1, where drafting is free: ``alpha, k, operations, speed``."""
    rows = []
    for alpha, k in TABLE_1:
        tokens = tokens_per_pass_flat(alpha, k)
        rows.append(
            {
                "alpha": alpha,
                "k": k,
                "operations": operations_factor(tokens, k, 0.0),
                "speed": speed_up(tokens, k, 0.0),
            }
        )
    return pd.DataFrame(rows)


def draws() -> pd.DataFrame:
    """Return tokens per pass as simulated and by equation 1: ``alpha, k, simulated_..., closed_form_...``.

    The simulation is a little below: the last pass of a request is cut at the answer's end.
    """
    rows = []
    for alpha, k in DRAWS:
        fleet = Fleet(speculation=AssumedSpeculation(drafter="mtp-head-8b", k=k, alpha=alpha))
        metrics = at_load(serve(fleet, _quiet()))
        rows.append(
            {
                "alpha": alpha,
                "k": k,
                "simulated_tokens_per_pass": metrics["tokens_per_pass"],
                "closed_form_tokens_per_pass": tokens_per_pass_flat(alpha, k),
            }
        )
    return pd.DataFrame(rows)


def theorems() -> pd.DataFrame:
    """Return theorems 3.8 (speed-up) and 3.11 (operations) beside the simulator, eight rows.

    Returns
    -------
    pd.DataFrame
        ``target, drafter, gpus, alpha, k, draft_cost, draft_operations, speed_up_closed_form, speed_up_simulated,
        operations_closed_form, operations_simulated``. The simulated speed-up is the ratio of medians of time per
        output token; operations are per output token, with prompts of 16 tokens so that they hardly count.
    """
    return pd.DataFrame(
        [_theorem(*pair, alpha, k) for pair in PAIRS for alpha, k in ACCEPTANCES],
    )


def _theorem(target: str, drafter: str, gpus: int, alpha: float, k: int) -> dict[str, object]:
    plain = Fleet(target=target, gpus=gpus, charges=Charges(target_all_reduce=False))
    drafting = plain.model_copy(update={"speculation": AssumedSpeculation(drafter=drafter, k=k, alpha=alpha)})
    model, head = drafting.step_model, drafting.drafter
    assert head is not None
    draft_s = replace(model, k=1).drafting_seconds(Rows(1, CONTEXT, 1, CONTEXT))
    c = draft_s / plain.step_model.seconds(Rows(1, CONTEXT))
    c_hat = head.matmul_parameters / model.target.matmul_parameters
    tokens = tokens_per_pass_flat(alpha, k)
    off, on = (at_load(serve(fleet, _quiet()))["tpot_p50_s"] for fleet in (plain, drafting))
    short = _quiet(SHORT_PROMPT)
    return {
        "target": target,
        "drafter": drafter,
        "gpus": gpus,
        "alpha": alpha,
        "k": k,
        "draft_cost": c,
        "draft_operations": c_hat,
        "speed_up_closed_form": speed_up(tokens, k, c),
        "speed_up_simulated": off / on,
        "operations_closed_form": operations_factor(tokens, k, c_hat),
        "operations_simulated": _operations(drafting, short) / _operations(plain, short),
    }


def _quiet(prompt: int | None = None) -> Requests:
    workload = _QUIET if prompt is None else _QUIET.model_copy(update={"new_input": Length(mean=prompt, cv=0)})
    return draw(workload, RATE, SEED, REQUESTS)


def _operations(fleet: Fleet, requests: Requests) -> float:
    """Return operations per output token, prompts included: they add up over rows, whatever else is served."""
    target, head = fleet.step_model.target, fleet.drafter
    k = 0 if fleet.speculation is None else fleet.speculation.k
    flops = 0.0
    for request, (prompt, output) in enumerate(zip(requests.prompt.tolist(), requests.output.tolist(), strict=True)):
        kept = fleet.bursts(request, output - 1).kept
        cached = prompt + 1.0 + np.cumsum(kept) - kept
        flops += prefill(target, float(prompt), 1.0).flops + float(
            verify(target, np.ones(len(kept)), cached, k).flops.sum()
        )
        if head is not None:
            flops += prefill(head, float(prompt), 1.0).flops
            for position in range(k):
                flops += float(decode(head, np.ones(len(kept)), cached + position).flops.sum())
    return flops / float(requests.output.sum())
