"""Cells of a server that exists on paper: one loop of steps that all rows share, seen through a client that is perfect.

Every row of a batch steps together in `step_s`; a prompt is read in `prefill_s`, which gives one token; a step of a row
gives one token and as many more as its draft has accepted. What a server can do wrong is a field, so that a test says
in a line what was served, and the records are made without a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from speclab.engines.base import EngineIdentity, Reading
from speclab.lab import Phases, Sampling, Speculation
from speclab.record.cell import Cell
from speclab.record.schema import CellRecord, CellSpec, ClientLag, Provenance

PHASES = Phases(length_s=16, drop_first_s=2, drop_last_s=1)
PROMPTS = 12
HEALTHY = (0.7, 0.45, 0.3)
"""Share of drafts accepted up to each position, by a drafter that pays."""


@dataclass(frozen=True)
class Served:
    """What one server does, and what is asked of it.

    Attributes
    ----------
    arm : str
        Name of the arm.
    k : int
        Draft tokens that the arm's file asks for; 0: it does not speculate.
    acceptance : tuple of float
        Of the server, whose k is its length.
    step_s, prefill_s : float
        Time of a step, and of a prompt.
    answer_tokens : (int, int)
        Shortest and longest answer; a prompt's is always the same.
    method : str
        Of speculation.
    concurrency, at_once : int
        Requests in flight, and how many of them the server runs.
    later, later_step_s, later_from_s : tuple of float, float, float
        Acceptance and step time from a moment on.
    chunks : str
        ``step``: an event is a step; ``pair``: two steps in one; ``token``: a step's tokens one by one.
    stuck : bool
        Whether every second slot's request is silent for ever.
    accepted_times : float
        What the counter of accepted tokens is multiplied by.
    gauges, counters, offers_steps : bool
        What its page of metrics offers.
    preemptions : float
        Preemptions a second.
    text : str
        What every answer begins with.
    """

    arm: str = "spec-k3"
    k: int = 3
    acceptance: tuple[float, ...] = HEALTHY
    step_s: float = 0.065
    prefill_s: float = 0.03
    answer_tokens: tuple[int, int] = (60, 140)
    method: Literal["draft_model", "ngram"] = "draft_model"
    concurrency: int = 8
    at_once: int = 1000
    later: tuple[float, ...] | None = None
    later_step_s: float = 0.0
    later_from_s: float = np.inf
    chunks: Literal["step", "pair", "token"] = "step"
    stuck: bool = False
    accepted_times: float = 1.0
    gauges: bool = True
    counters: bool = True
    offers_steps: bool = True
    preemptions: float = 0.0
    text: str = "The answer to the question that was asked is"

    def at(self, concurrency: int) -> Served:
        """Return the same server at another load."""
        return replace(self, concurrency=concurrency)

    def cell(self, repeat: int = 0, seed: int = 0) -> Cell:
        """Return the record of one cell."""
        return _Run(self, np.random.default_rng([seed, repeat, self.concurrency])).cell(repeat)


BASELINE = Served(arm="baseline", k=0, acceptance=(), step_s=0.05)


@dataclass
class _Row:
    prompt: int
    start_s: float
    left: int
    events: list[tuple[float, int]]
    held: int = 0
    is_first: bool = True


class _Run:
    """The loop of steps, from an empty server to the end of the load."""

    def __init__(self, served: Served, rng: np.random.Generator) -> None:
        self.served, self.rng, self.sent = served, rng, 0
        self.rows: list[dict[str, Any]] = []
        self.readings: list[Reading] = []
        self.counted = dict.fromkeys(("steps", "generation_tokens", "drafts", "draft_tokens", "accepted_tokens"), 0.0)
        self.by_position = np.zeros(len(served.acceptance))

    def cell(self, repeat: int) -> Cell:
        served = self.served
        opens_s, closes_s = PHASES.window_s
        due_s = [*np.arange(opens_s, closes_s), closes_s]
        silent = [_Row(0, 0.0, 0, []) for slot in range(served.concurrency) if served.stuck and slot % 2]
        waiting = [self._sent(0.0) for _ in range(served.concurrency - len(silent))]
        running: list[_Row] = []
        now_s = 0.0
        while now_s < PHASES.length_s:
            if waiting and len(running) < served.at_once:
                row = waiting.pop(0)
                now_s = self._counted_until(now_s + served.prefill_s, due_s, len(running), len(waiting))
                self.counted["steps"] += 1
                self._gives(row, 1, now_s)
                running.append(row)
                continue
            is_later = now_s >= served.later_from_s
            acceptance = served.later if is_later and served.later is not None else served.acceptance
            step_s = served.later_step_s if is_later and served.later_step_s else served.step_s
            now_s = self._counted_until(now_s + step_s, due_s, len(running), len(waiting))
            self.counted["steps"] += 1
            for row in list(running):
                accepted = int((self.rng.random() < np.array(acceptance)).sum())
                self._drafted(acceptance, accepted)
                self._gives(row, min(1 + accepted, row.left), now_s)
                if not row.left:
                    running.remove(row)
                    self._ends(row, now_s)
                    waiting.append(self._sent(now_s))
        for row in [*running, *waiting, *silent]:
            self._ends(row, None)
        self.rows.sort(key=lambda row: row["start_s"])
        return self._record(repeat)

    def _sent(self, now_s: float) -> _Row:
        prompt = self.sent % PROMPTS
        self.sent += 1
        least, most = self.served.answer_tokens
        return _Row(prompt, now_s, least + (prompt * 37) % (most - least + 1), [])

    def _counted_until(self, then_s: float, due_s: list[float], running: int, waiting: int) -> float:
        while due_s and due_s[0] < then_s:
            self.readings.append(self._reading(due_s.pop(0), running, waiting))
        return then_s

    def _reading(self, at_s: float, running: int, waiting: int) -> Reading:
        served = self.served
        gauges = {"running": running, "waiting": waiting} if served.gauges else {}
        if not served.counters:
            return Reading(at_s=at_s, **gauges)
        drafted = {"drafts", "draft_tokens", "accepted_tokens"}
        counted = {name: value for name, value in self.counted.items() if served.acceptance or name not in drafted}
        if "accepted_tokens" in counted:
            counted["accepted_tokens"] *= served.accepted_times
            counted["accepted_by_position"] = tuple(self.by_position)  # type: ignore[assignment]
        if not served.offers_steps:
            del counted["steps"]
        return Reading(
            at_s=at_s, preemptions=round(served.preemptions * at_s), prefix_cache_queries=0, prefix_cache_hits=0,
            **gauges, **counted,
        )  # fmt: skip

    def _drafted(self, acceptance: tuple[float, ...], accepted: int) -> None:
        if acceptance:
            self.counted["drafts"] += 1
            self.counted["draft_tokens"] += len(acceptance)
            self.counted["accepted_tokens"] += accepted
            self.by_position[:accepted] += 1

    def _gives(self, row: _Row, tokens: int, now_s: float) -> None:
        row.left -= tokens
        self.counted["generation_tokens"] += tokens
        if row.is_first or self.served.chunks == "step":
            row.is_first = False
            row.events.append((now_s, tokens))
        elif self.served.chunks == "token":
            row.events += [(now_s + 1e-5 * index, 1) for index in range(tokens)]
        else:
            row.held += tokens
            if row.left == 0 or row.held > tokens:
                row.events.append((now_s, row.held))
                row.held = 0

    def _ends(self, row: _Row, now_s: float | None) -> None:
        tokens = [tokens for _, tokens in row.events]
        ended = now_s is not None
        self.rows.append(
            {
                "prompt_id": f"chat/{row.prompt:02d}",
                "warm_up": False,
                "prompt_tokens": 50 + row.prompt if row.events else None,
                "output_tokens": sum(tokens) if ended else None,
                "start_s": row.start_s,
                "end_s": row.events[-1][0] if ended else None,
                "event_us": np.rint([(at - row.start_s) * 1e6 for at, _ in row.events]).astype(np.int32),
                "event_tokens": np.array(tokens, dtype=np.int16),
                "finish_reason": "stop" if ended else None,
                "error": None,
                "text": f"{self.served.text} {row.prompt}" if ended else None,
            }
        )

    def _record(self, repeat: int) -> Cell:
        served = self.served
        speculation = None
        if served.k:
            given: dict[str, Any] = {"prompt_lookup_min": 2, "prompt_lookup_max": 4}
            given = given if served.method == "ngram" else {"model": "a drafter"}
            speculation = Speculation(method=served.method, num_speculative_tokens=served.k, **given)
        asked = CellSpec(
            lab="rig", arm=served.arm, workload="chat", concurrency=served.concurrency, repeat=repeat,
            engine="endpoint", device="paper", target="a model", phases=PHASES, sampling=Sampling(),
            speculation=speculation, server={}, environment={}, prompts_sha256="0", code_version="1",
        )  # fmt: skip
        record = CellRecord(
            asked=asked, asked_sha256=asked.sha256, status="ok", window_s=PHASES.window_s,
            readings=tuple(self.readings), client_lag=ClientLag(mean_ms=0.1, p99_ms=0.5, max_ms=2.0),
            client_clean_rate_per_s=1e6,
            provenance=Provenance(
                identity=EngineIdentity(engine="endpoint", version="a server 1", device="paper"),
                started_at="2026-12-01T00:00:00Z", ended_at="2026-12-01T00:01:00Z", git_revision=None,
                python="3.12", platform="linux", cpu="a cpu", packages={},
            ),
        )  # fmt: skip
        table = pd.DataFrame(self.rows).astype({"end_s": float, "prompt_tokens": float, "output_tokens": float})
        table.insert(0, "request", np.arange(len(table)))
        return Cell(record, table)
