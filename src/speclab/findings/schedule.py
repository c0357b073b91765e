"""A policy as vLLM's own schedule: how many draft tokens at which batch size.

Format: ``num_speculative_tokens_per_batch_size`` inside ``--speculative-config``, a list of ``[first batch size, last
batch size, k]`` (docs.vllm.ai, "Dynamic Speculative Decoding"; ``vllm/v1/spec_decode/dynamic/utils.py`` of vLLM 0.32).
Ranges rise, do not overlap and begin at 1; beyond the last one its k is kept. vLLM looks the k up anew at each step by
the requests in that step, so the schedule has no memory: a gap cannot be written into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speclab.findings.policy import Choice, Switch

KEY = "num_speculative_tokens_per_batch_size"

Schedule = list[tuple[int, int, int]]
"""First batch size, last batch size, k."""


def schedule(
    made: Sequence[Choice], changes: Sequence[Switch], k_by_arm: Mapping[str, int], max_num_seqs: int
) -> Schedule:
    """Return the schedule of one drafter's arms (the baseline is k = 0).

    At a switch to a smaller k the schedule turns at the lower end of the gap, at one to a larger k at its upper end:
    it drafts more only where that is shown to pay.

    Parameters
    ----------
    made, changes : sequence of Choice, sequence of Switch
        From `speclab.findings.policy`, of arms of one drafter and the baseline.
    k_by_arm : mapping of str to int
        Draft tokens of each arm; 0 for the baseline.
    max_num_seqs : int
        The largest batch that the server runs.
    """
    if not made:
        raise ValueError("a schedule needs at least one choice")
    ranges: Schedule = []
    first, k = 1, k_by_arm[made[0].arm]
    for change in changes:
        then = k_by_arm[change.above]
        last = change.low - 1 if then < k else change.high
        if last >= first:
            ranges.append((first, min(last, max_num_seqs), k))
            first = last + 1
        k = then
    if first <= max_num_seqs:
        ranges.append((first, max_num_seqs, k))
    return _joined(ranges)


def at(ranges: Schedule, batch_size: int) -> int:
    """Return the k that vLLM takes at a batch size: that of its range; in a gap or beyond, of the range before."""
    return [k for first, _, k in ranges if first <= batch_size][-1]


def _joined(ranges: Schedule) -> Schedule:
    """Return the ranges with neighbours of the same k made one."""
    joined: Schedule = []
    for first, last, k in ranges:
        if joined and joined[-1][2] == k:
            first = joined.pop()[0]
        joined.append((first, last, k))
    return joined
