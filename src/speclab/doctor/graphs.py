"""Which decode steps vLLM replays from a captured CUDA graph, and how far it pads them, by its own rules.

Read in vLLM 0.32: ``_set_cudagraph_sizes`` in ``vllm/config/vllm.py`` makes the list, runner V1 rounds it by
``adjust_cudagraph_sizes_for_spec_decode``, runner V2 in ``vllm/v1/worker/gpu/cudagraph_utils.py``. A step of n requests
with k drafts each is n x (k + 1) tokens, and a graph of whole steps has a multiple of k + 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from speclab.doctor.base import Case, Diagnosis, say
from speclab.doctor.versions import RUNNER, V2_DRAFTS_SINCE, numbers

SIZES, LARGEST = "cudagraph-capture-sizes", "max-cudagraph-capture-size"
CONFIG = "compilation-config"
DEFAULT_LARGEST = 512
"""Tokens that vLLM's own list ends at, at most, unless a flag says otherwise (1024 on data-centre Blackwell)."""
DEFAULT_SEATS = 256
"""Seats where no flag gives them; more of them on a large GPU add no size that this list has not."""
READ_IN = (0, 32)
"""The first version whose own list of sizes follows the rule that is written out here."""
MOST_PADDING = 0.1
"""Share of a step's tokens by which an arm may be padded more than its baseline: a tenth is a finding elsewhere."""
MODES = {0: "NONE", 1: "PIECEWISE"}
"""vLLM's graphs by its optimization level; `FULL_AND_PIECEWISE` above."""
CITES = ("vllm#50488", "vllm#54933", "vllm#30330")
SERVE_FLAGS = "https://docs.vllm.ai/en/latest/configuration/serve_args.html"


@dataclass(frozen=True, slots=True)
class Graphs:
    """What a server captures.

    Attributes
    ----------
    sizes : tuple of int
        Tokens of its graphs, rising.
    seats : int
        Requests that a step may hold.
    k_at : tuple of int
        Draft tokens by the number of requests, from 1 on.
    mode : str
        vLLM's ``cudagraph_mode``.
    on_v2 : bool
        Whether model runner V2 rounds and picks them.
    """

    sizes: tuple[int, ...]
    seats: int
    k_at: tuple[int, ...]
    mode: str = "FULL_AND_PIECEWISE"
    on_v2: bool = True

    def runs_as(self, rows: int) -> int | None:
        """Return the tokens of the graph that a step of so many requests is replayed from; None where there is none."""
        query = 1 + self.k_at[rows - 1]
        tokens = rows * query
        if not self.sizes or self.mode == "NONE":
            return None
        if self.mode not in ("FULL_AND_PIECEWISE", "FULL_DECODE_ONLY"):
            return _next(self.sizes, tokens)
        if not self.on_v2:  # V1 rounds its one list, for whole steps and all others
            widest = 1 + max(self.k_at)
            return _next(rounded(self.sizes, widest, self.sizes[-1]) or [widest], tokens)
        whole = {
            (size, each)
            for each in {1 + k for k in self.k_at}
            for size in rounded(self.sizes, each, min(self.sizes[-1], self.seats * (1 + max(self.k_at))))
            if size // each <= self.seats
        }
        at = min((size for size, _ in whole if size >= tokens), default=None)
        if at is not None and (at, query) in whole:
            return at
        return _next(self.sizes, tokens) if self.mode == "FULL_AND_PIECEWISE" else None


def rounded(sizes: Iterable[int], multiple: int, largest: int) -> list[int]:
    """Return sizes rounded up to a multiple, once each; those that pass the largest fall away, as in vLLM."""
    up = {multiple * math.ceil(size / multiple) for size in sizes}
    return sorted(size for size in up if size <= largest)


def own_sizes(seats: int, k_at: Sequence[int], batched_tokens: float, largest: int | None,
              interactive: bool = False) -> list[int]:  # fmt: skip
    """Return the list that vLLM makes where none is given.

    Parameters
    ----------
    seats : int
        ``max_num_seqs``.
    k_at : sequence of int
        Draft tokens by the number of requests, from 1 to `seats`.
    batched_tokens : float
        ``max_num_batched_tokens``; infinite where it is not known.
    largest : int, optional
        ``max_cudagraph_capture_size``. Sizes of whole steps are added only where it is not given (vllm#54933).
    interactive : bool
        Whether ``performance_mode`` is ``interactivity``.
    """
    whole: set[int] = set()
    ends_at = largest
    if ends_at is None:
        widest = 1 + max(k_at)
        ends_at = min(seats * widest * 2, DEFAULT_LARGEST)
        requests_by_query = {1 + k: rows for rows, k in enumerate(k_at, start=1)}  # the last is the widest batch
        if widest > 1:
            whole = {n * query for query, rows in requests_by_query.items() for n in _request_counts(rows)}
        else:
            whole = {seats}
        whole = {size for size in whole if size <= min(ends_at, batched_tokens)}
    ends_at = int(min(ends_at, batched_tokens))
    small = range(1, min(ends_at, 32) + 1) if interactive else [size for size in (1, 2, 4) if size <= ends_at]
    grid = {*small, *range(8, min(ends_at + 1, 256), 8), *range(256, ends_at + 1, 16)}
    if batched_tokens <= ends_at:
        grid.add(ends_at)
    return sorted(grid | whole)


def graphs(case: Case) -> list[Diagnosis]:
    """Find steps of n x (k + 1) tokens that this arm alone runs without a CUDA graph, or padded."""
    rule = "CUDA graphs"
    if case.flags.get("enforce-eager") is True or _mode(case) == "NONE":
        return say("fine", rule, "off in this arm", "", *CITES)
    if case.machine.vllm_build == "cpu":
        return say("fine", rule, "a CPU has none", "", *CITES)
    for flag in (SIZES, LARGEST):
        if flag in case.flags and _inner(case).get(flag.replace("-", "_")) is not None:
            return say("will fail", rule, f"{flag} given twice, by itself and in {CONFIG}", "keep one of them",
                       SERVE_FLAGS)  # fmt: skip
    listed, largest = _listed(case), _given(case, LARGEST)
    if listed is not None and isinstance(largest, int) and largest != max(listed, default=0):
        return say("will fail", rule, f"{LARGEST} {largest}, and the largest size listed is {max(listed, default=0)}",
                   "make them agree, or leave the first out", *CITES)  # fmt: skip
    if listed is None and case.machine.vllm is not None and numbers(case.machine.vllm) < READ_IN:
        return say("not known here", rule, f"what list vLLM {case.machine.vllm} makes by itself: the rule is known "
                   "from 0.32 on", _remedy(case), *CITES)  # fmt: skip
    return _held_against_the_baseline(case, rule)


def captured(case: Case) -> Graphs:
    """Return what the arm's server captures, by its flags."""
    given = case.whole_number("max-num-seqs") or max(DEFAULT_SEATS, case.top)
    seats = max(given, 1)
    k_at = tuple(case.arm.k_at(rows) for rows in range(1, max(seats, case.top) + 1))
    listed, batched = _listed(case), case.whole_number("max-num-batched-tokens") or math.inf
    largest = _given(case, LARGEST)
    sizes = listed if listed is not None else own_sizes(
        seats, k_at[:seats], batched, largest if isinstance(largest, int) else None,
        case.flags.get("performance-mode") == "interactivity",
    )  # fmt: skip
    on_v2, mode = _on_v2(case), _mode(case)
    if case.arm.has_schedule and not on_v2:
        mode = "PIECEWISE"
    return Graphs(tuple(sizes), seats, k_at, mode, on_v2)


def _held_against_the_baseline(case: Case, rule: str) -> list[Diagnosis]:
    ours = captured(case)
    theirs = None if case.baseline is None else captured(replace(case, arm=case.baseline))
    without, padded = [], []
    for n in sorted({min(n, ours.seats) for n in case.lab.concurrencies}):
        tokens, run = n * (1 + case.arm.k_at(n)), ours.runs_as(n)
        if run is None:
            without.append(f"{n} x {1 + case.arm.k_at(n)} = {tokens}")
            continue
        beside = (theirs.runs_as(n) if theirs is not None else None) or n
        if run / tokens > beside / n + MOST_PADDING:
            padded.append(f"{n} x {1 + case.arm.k_at(n)} = {tokens} as {run}")
    ends = f"the list ends at {ours.sizes[-1] if ours.sizes else 0} tokens"
    if without:
        also = f"; padded: {', '.join(padded)}" if padded else ""
        return say("will mislead", rule, f"no graph for steps of {', '.join(without)} tokens: {ends}{also}",
                   _remedy(case), *CITES)  # fmt: skip
    if padded:
        return say("will mislead", rule, f"steps are padded, the baseline's are not: {', '.join(padded)} tokens",
                   _remedy(case), *CITES)  # fmt: skip
    most = max(n * (1 + case.arm.k_at(n)) for n in case.lab.concurrencies)
    return say("fine", rule, f"a graph for n x (k + 1) tokens at each n, up to {most}; {ends}", "", *CITES)


def _remedy(case: Case) -> str:
    wanted = sorted({n * (1 + k) for n in case.lab.concurrencies for k in (case.arm.k_at(n), 0)})
    listed = ", ".join(map(str, wanted))
    return f"{SIZES}: [{listed}]" if len(wanted) <= 12 else f"list n x (k + 1) in {SIZES}"


def _listed(case: Case) -> list[int] | None:
    """Return the sizes that a flag lists, those dropped that vLLM drops; None where none does."""
    sizes = _given(case, SIZES)
    if not isinstance(sizes, list):
        return None
    cap = case.whole_number("max-num-batched-tokens")
    return sorted({size for size in sizes if isinstance(size, int) and (cap is None or size <= cap)})


def _given(case: Case, flag: str) -> Any:
    return case.flags.get(flag, _inner(case).get(flag.replace("-", "_")))


def _inner(case: Case) -> dict[str, Any]:
    inner = case.flags.get(CONFIG)
    return inner if isinstance(inner, dict) else {}


def _mode(case: Case) -> str:
    given = _inner(case).get("cudagraph_mode")
    if isinstance(given, str):
        return given.upper()
    level = case.whole_number("optimization-level")
    return MODES.get(2 if level is None else level, "FULL_AND_PIECEWISE")


def _on_v2(case: Case) -> bool:
    forced, version = case.variable(RUNNER), case.machine.vllm
    if forced is not None:
        return forced not in ("0", "false", "False")
    return version is None or numbers(version) >= V2_DRAFTS_SINCE


def _request_counts(most: int) -> list[int]:
    most = min(most, DEFAULT_LARGEST)
    grid = [n for n in (1, 2, 4) if n <= most]
    return sorted({*grid, *range(8, min(most + 1, 256), 8), *range(256, most + 1, 16), most})


def _next(sizes: Sequence[int], tokens: int) -> int | None:
    return min((size for size in sizes if size >= tokens), default=None)
