"""The mock's other pages: its models, its counters and gauges in several servers' names."""

from __future__ import annotations

import json
from collections.abc import Iterator

from speclab.engines.mock_batch import Counters, RunningBatch
from speclab.engines.mock_script import Script

NAMES: dict[str, dict[str, str]] = {
    "vllm": {
        "running": "vllm:num_requests_running",
        "waiting": "vllm:num_requests_waiting",
        "steps": "vllm:iteration_tokens_total_count",
        "tokens": "vllm:generation_tokens_total",
        "prompt_tokens": "vllm:prompt_tokens_total",
        "preemptions": "vllm:num_preemptions_total",
        "prefix_cache_queries": "vllm:prefix_cache_queries_total",
        "prefix_cache_hits": "vllm:prefix_cache_hits_total",
        "drafts": "vllm:spec_decode_num_drafts_total",
        "draft_tokens": "vllm:spec_decode_num_draft_tokens_total",
        "accepted_tokens": "vllm:spec_decode_num_accepted_tokens_total",
        "accepted_at": "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    },
    "sglang": {
        "running": "sglang:num_running_reqs",
        "waiting": "sglang:num_queue_reqs",
        "tokens": "sglang:generation_tokens_total",
        "prompt_tokens": "sglang:prompt_tokens_total",
    },
    "llama.cpp": {
        "running": "llamacpp:requests_processing",
        "waiting": "llamacpp:requests_deferred",
        "steps": "llamacpp:n_decode_total",
        "tokens": "llamacpp:tokens_predicted_total",
        "prompt_tokens": "llamacpp:prompt_tokens_total",
    },
}
"""Our names of counters and gauges, and each server's."""


def models(script: Script) -> str:
    """Return the list of models."""
    return script.models or json.dumps({"object": "list", "data": [{"id": script.model, "owned_by": "mock"}]})


def metrics(script: Script, batch: RunningBatch, since: list[dict[str, float]]) -> str:
    """Return the page of counters and gauges in Prometheus' text format.

    Parameters
    ----------
    script : Script
        What is shown, and how it lies.
    batch : RunningBatch
        What is so.
    since : list of dict
        Counters of each engine at their last reset; empty where there was none.
    """
    lines: list[str] = []
    for number, counts in enumerate(counted(script, batch)):
        before = since[number] if since else {}
        shown = _gauges(script, batch, number)
        shown |= {key: value - before.get(key, 0.0) for key, value in counts.items()}
        labels = f'engine="{number}",model_name="{script.model}"'
        for name, theirs in NAMES[script.dialect].items():
            factor = script.counter_factors.get(name, 1.0)
            for key, label in _samples(name, shown):
                lines.append(f"{theirs}{{{labels}{label}}} {float(factor * shown[key])}")
    return "\n".join(lines) + "\n"


def counted(script: Script, batch: RunningBatch) -> list[dict[str, float]]:
    """Return each engine's counters by our names; of speculation only where there is any."""
    return [_counts(script, counters) for counters in batch.counters]


def _samples(name: str, shown: dict[str, float]) -> Iterator[tuple[str, str]]:
    """Yield the keys of one name, and the label that each has of its own."""
    if name in shown:
        yield name, ""
    for key in shown:
        base, _, position = key.partition("/")
        if position and base == name:
            yield key, f',position="{position}"'


def _gauges(script: Script, batch: RunningBatch, number: int) -> dict[str, float]:
    if not script.gauges:
        return {}
    running = sum(row.engine == number for row in (*batch.running, *batch.hanging))
    waiting = sum(row.engine == number for row in batch.waiting)
    if script.running_shown is not None:
        running = script.running_shown if number == 0 else 0
    return {"running": running, "waiting": waiting}


def _counts(script: Script, counters: Counters) -> dict[str, float]:
    counts: dict[str, float] = {
        "steps": counters.steps,
        "tokens": counters.tokens,
        "prompt_tokens": counters.prompt_tokens,
        "preemptions": counters.preemptions,
        "prefix_cache_queries": counters.prompt_tokens,
        "prefix_cache_hits": 0,
    }
    if script.positions is not None:
        accepted = counters.accepted
        counts["drafts"] = sum(accepted.values())
        counts["draft_tokens"] = counters.draft_tokens
        counts["accepted_tokens"] = sum(length * drafts for length, drafts in accepted.items())
        for position in range(script.positions):
            above = sum(drafts for length, drafts in accepted.items() if length > position)
            counts[f"accepted_at/{position}"] = above
    return counts
