"""A vLLM server's Prometheus text as a `Reading`.

Only exact names count: each speculative counter stands beside a ``_created`` gauge that holds a time stamp
(vllm#41916). What a server does not offer stays None, so that "not offered" is never read as 0. Names and labels are
those of vLLM's page "Production metrics".
"""

from __future__ import annotations

import math
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

from speclab.engines.base import Reading

_FIELDS = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:iteration_tokens_total_count": "steps",  # a histogram over engine steps; its count is the steps
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:generation_tokens_total": "generation_tokens",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:prefix_cache_queries_total": "prefix_cache_queries",
    "vllm:prefix_cache_hits_total": "prefix_cache_hits",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
}
_BY_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"


def reading(text: str, at_s: float) -> Reading:
    """Return the counters and gauges in a ``/metrics`` page.

    Parameters
    ----------
    text : str
        The page, in Prometheus' text format.
    at_s : float
        Loop time of the reading, s.

    Returns
    -------
    Reading
        Sums over all label sets (one for each engine of a data-parallel server); None where the page has no such name.
        ``accepted_by_position`` runs from position 0 to the first position without a counter.

    Raises
    ------
    ValueError
        A line with one of our names does not parse, or a position's counter does not say which.
    """
    sums: dict[str, float] = {}
    by_position: defaultdict[int, float] = defaultdict(float)
    for family in text_string_to_metric_families(_wanted(text)):
        for sample in family.samples:
            if not math.isfinite(sample.value):
                continue  # no count; JSON, and so a record, has no word for it
            if sample.name == _BY_POSITION:
                by_position[int(sample.labels.get("position", ""))] += sample.value
            elif sample.name in _FIELDS:
                name = _FIELDS[sample.name]
                sums[name] = sums.get(name, 0.0) + sample.value
    return Reading(at_s=at_s, accepted_by_position=_unbroken(by_position), **sums)


def _wanted(text: str) -> str:
    """Return the lines that hold our names: the page has hundreds of others, and parsing them would delay the load."""
    return "\n".join(line for line in text.splitlines() if line[: _name_end(line)] in _NAMES) + "\n"


_NAMES = frozenset((*_FIELDS, _BY_POSITION))


def _name_end(line: str) -> int:
    brace = line.find("{")
    return brace if brace >= 0 else line.find(" ")


def _unbroken(by_position: dict[int, float]) -> tuple[float, ...] | None:
    values: list[float] = []
    while len(values) in by_position:
        values.append(by_position[len(values)])
    return tuple(values) or None
