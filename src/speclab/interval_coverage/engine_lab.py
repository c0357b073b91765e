"""A small lab on the simulated engine: the whole way from a closed loop's records to findings, many times over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pandas as pd

from speclab import lab as labs
from speclab import prompts
from speclab.engines import simulated
from speclab.engines.base import EngineIdentity
from speclab.findings.long_table import findings
from speclab.interval_coverage.held import Truth, beside, place
from speclab.lab import Answers, Arm, Lab, Phases, SimulatedDrafter, Speculation, WorkloadName
from speclab.load.closed_loop import CellLog, run_cell
from speclab.record import provenance, store
from speclab.record.cell import Cell
from speclab.record.schema import Asked, CellRecord
from speclab.results import lab_tables

CONCURRENCIES = (2, 8, 32, 64)
WORKLOAD: WorkloadName = "chat"
K = 8


def lab_of(window_s: float = 6.0) -> Lab:
    """Return Lab 9 with short answers and short cells.

    How long each answer is belongs to the lab, as it does at temperature 0: it is the same in every one made.
    """
    lab = labs.load("lab09")
    assert lab.simulated is not None
    target = lab.simulated.model_copy(update={"answers": {WORKLOAD: Answers(mean_tokens=60, cv=0.5)}})
    return lab.model_copy(
        update={
            "concurrencies": CONCURRENCIES,
            "workloads": (WORKLOAD,),
            "phases": Phases(length_s=window_s + 1.5, drop_first_s=1.0, drop_last_s=0.5),
            "simulated": target,
        }
    )


def arms_of(lab: Lab) -> tuple[Arm, Arm]:
    """Return the baseline, and an n-gram arm that pays at few requests in flight and not at many."""
    drafter = SimulatedDrafter(
        host_ms_per_step=2.5,
        acceptance={WORKLOAD: (0.50, 0.25, 0.125, 0.0625, 0.03, 0.015, 0.008, 0.004)},
    )
    speculation = Speculation(method="ngram", num_speculative_tokens=K, prompt_lookup_min=2, prompt_lookup_max=4)
    arm = lab.arm("ngram-k8")
    return lab.arm("baseline"), arm.model_copy(update={"speculation": speculation, "simulated": drafter})


def tables_of_lab(seed: int) -> lab_tables.Tables:
    """Return the tables of one small lab; the seed shuffles its prompts and decides which drafts are accepted."""
    lab = lab_of()
    return lab_tables.of([_cell(lab, arm, at, seed) for arm in arms_of(lab) for at in CONCURRENCIES])


def intervals(of_labs: Sequence[lab_tables.Tables]) -> pd.DataFrame:
    """Return every interval of some labs beside the truth, as `speclab.interval_coverage.held.intervals` does.

    The truth is what all labs together come to: every token of all of them, as one lab with as many repeats.
    """
    as_repeats = [_numbered(tables, index) for index, tables in enumerate(of_labs)]
    together = _found(*(pd.concat(each, ignore_index=True) for each in zip(*as_repeats, strict=True)))
    places = zip(together["finding"], together["concurrency"], strict=True)
    truth = Truth(dict(zip(map(place, *zip(*places, strict=True)), together["value"], strict=True)))
    apart = [_apart(tables, str(index)) for index, tables in enumerate(of_labs)]
    return beside(_found(*(pd.concat(each, ignore_index=True) for each in zip(*apart, strict=True))), truth)


def _numbered(tables: lab_tables.Tables, repeat: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    return tables.cells.assign(repeat=repeat), tables.blocks.assign(repeat=repeat)


def _apart(tables: lab_tables.Tables, source: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    return tables.cells.assign(source=source), tables.blocks.assign(source=source)


def _found(cells: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    # a lab this small may fail a check by chance; what is asked here is how often the interval holds the truth
    passed = cells.assign(failed_checks=None)
    table = findings(passed, pd.DataFrame(), {"baseline": 0, "ngram-k8": K}, blocks=blocks)
    return table[table["arm"] == "ngram-k8"]


def _cell(lab: Lab, arm: Arm, concurrency: int, seed: int) -> Cell:
    """Run one cell in virtual time and keep it in memory."""
    opening = simulated.opening(lab, arm, WORKLOAD, seed_key=str(seed))
    prompt_set = prompts.load(WORKLOAD, seed)
    made: list[tuple[CellLog, EngineIdentity]] = []

    async def run() -> None:
        async with opening.engine() as engine:
            made.append((await run_cell(engine, prompt_set, concurrency, lab.phases, lab.sampling), engine.identity))

    with asyncio.Runner(loop_factory=opening.loop_factory) as runner:
        runner.run(run())
    log, identity = made[0]
    asked = Asked(
        lab=lab.name, arm=arm.arm, workload=WORKLOAD, concurrency=concurrency, repeat=0, engine="simulated",
        device=identity.device, target=lab.target.model, phases=lab.phases, sampling=lab.sampling,
        speculation=arm.speculation, server=lab.server_flags(arm), environment=lab.environment,
        simulated_target=lab.simulated, simulated_drafter=arm.simulated, prompts_sha256=prompt_set.sha256,
        code_version="coverage",
    )  # fmt: skip
    record = CellRecord(
        asked=asked,
        asked_sha256=asked.sha256,
        status="ok",
        window_s=lab.phases.window_s,
        readings=tuple(reading.model_copy(update={"at_s": reading.at_s - log.start_s}) for reading in log.readings),
        provenance=provenance.of(identity, provenance.now()),
    )
    table = store.to_table(log, log.warm_up_count(concurrency))
    return Cell(record, store.to_frame(table))
