"""One row for a cell: the form in which findings, tables and figures take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from speclab.metrics import acceptance, latency, steps, throughput
from speclab.metrics.answers import answers_by_prompt
from speclab.metrics.blocks import blocks
from speclab.metrics.checks.base import Check, Verdict
from speclab.metrics.checks.counted import counter_residual
from speclab.metrics.checks.table import verdicts
from speclab.metrics.replay import replays_by_prompt
from speclab.metrics.window import CellWindow, cut
from speclab.record.cell import Cell

Value = float | str | None

METRICS: dict[str, Callable[[CellWindow], float | None]] = {
    "system_throughput": throughput.system_throughput,
    "activity_throughput": throughput.activity_throughput,
    "user_throughput": throughput.user_throughput,
    "user_throughput_p10": partial(throughput.user_throughput_quantile, share=0.1),
    "user_throughput_p50": partial(throughput.user_throughput_quantile, share=0.5),
    "user_throughput_p90": partial(throughput.user_throughput_quantile, share=0.9),
    "time_per_output_token": latency.time_per_output_token,
    "time_per_output_token_p50": partial(latency.time_per_output_token_quantile, share=0.5),
    "time_per_output_token_p99": partial(latency.time_per_output_token_quantile, share=0.99),
    "step_gap_p50": partial(latency.step_gap, share=0.5),
    "step_gap_p99": partial(latency.step_gap, share=0.99),
    "step_time": steps.step_time,
    "tokens_per_step": acceptance.tokens_per_step,
    "ms_per_accepted_token": steps.ms_per_accepted_token,
    "reported_acceptance_length": acceptance.reported_acceptance_length,
    "draft_coverage": acceptance.draft_coverage,
    "draft_tokens_per_draft": acceptance.draft_tokens_per_draft,
    "occupancy": throughput.occupancy,
    "activity_occupancy": throughput.activity_occupancy,
    "in_flight": throughput.in_flight,
    "answering": throughput.answering,
    "counter_residual": counter_residual,
}
"""Each metric in the row of a `Summary`, by name."""

KEYS = ("arm", "workload", "concurrency", "repeat", "source")


@dataclass(frozen=True, slots=True)
class Summary:
    """What one cell comes to.

    Attributes
    ----------
    row : dict
        ``arm, workload, concurrency, repeat, source``; ``conditions``, a hash of all that an arm shares with its
        baseline (`speclab.record.schema.CellSpec.conditions`); ``status`` (ok, failed) and ``failure`` (class and
        reason); ``requests`` sent, ``failed_requests``, ``ended_requests`` (those that times per output token are taken
        from, with ``one_token_answers`` among them, which have none), ``window_s``; each metric under its function's
        name, quantiles as ``_p50`` and so on; ``failed_checks`` and ``warned_checks``, names joined by ``; `` or null.
        A failed cell has null metrics.
    positions : pd.DataFrame
        Acceptance by draft position: the cell's keys, then `acceptance.COLUMNS`; no rows if it failed.
    checks : pd.DataFrame
        A row each: check, verdict, value, limit, reason, behind the cell's keys; no rows if it failed.
    answers : pd.DataFrame
        A row for each prompt: the cell's keys, then `speclab.metrics.answers.COLUMNS`; no rows if it failed.
    blocks : pd.DataFrame
        A row for each block of the window: the cell's keys, then `speclab.metrics.blocks.COLUMNS`; no rows if it
        failed.
    replays : pd.DataFrame
        A row for each prompt: the cell's keys, then the columns of `speclab.metrics.replay.replays_by_prompt`; no rows
        if it failed or does not draft.
    """

    row: dict[str, Value]
    positions: pd.DataFrame
    checks: pd.DataFrame
    answers: pd.DataFrame
    blocks: pd.DataFrame
    replays: pd.DataFrame


def of(cell: Cell) -> Summary:
    """Return everything that one cell comes to, cut at its window once."""
    record = cell.record
    failed = record.status == "failed"
    view = cut(cell)
    made = [] if failed else verdicts(view)
    row: dict[str, Value] = {
        **_keys(cell),
        "conditions": record.asked.conditions,
        "status": record.status,
        "failure": None if record.failure is None else f"{record.failure.kind}: {record.failure.reason}",
        "requests": len(view.requests),
        "failed_requests": int(view.requests["error"].notna().sum()),
        "ended_requests": len(view.ended),
        "one_token_answers": latency.one_token_answers(view),
        "window_s": view.window.length_s,
        **{name: None if failed else metric(view) for name, metric in METRICS.items()},
        "failed_checks": _named(made, "FAIL"),
        "warned_checks": _named(made, "WARN"),
    }
    columns = ["check", "verdict", "value", "limit", "reason"]
    checks = pd.DataFrame([[getattr(check, column) for column in columns] for check in made], columns=columns)
    text = acceptance.acceptance_by_position(view)
    tables = (text, checks, answers_by_prompt(view), blocks(view), replays_by_prompt(view))
    return Summary(row, *(_keyed(table.iloc[:0] if failed else table, cell) for table in tables))


def _keys(cell: Cell) -> dict[str, Value]:
    asked = cell.record.asked
    return {
        "arm": asked.arm,
        "workload": asked.workload,
        "concurrency": asked.concurrency,
        "repeat": asked.repeat,
        "source": cell.record.provenance.identity.source,
    }


def _keyed(table: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    keyed = table.assign(**_keys(cell))
    return keyed[[*KEYS, *table.columns]]


def _named(made: list[Check], verdict: Verdict) -> str | None:
    return "; ".join(check.check for check in made if check.verdict == verdict) or None
