"""A small lab on the simulated engine: the whole path from a closed loop's records to findings, many times over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pandas as pd

from speclab import lab as labs
from speclab import prompts
from speclab.engines import simulated, vllm_flags
from speclab.engines.base import EngineIdentity
from speclab.errors import UserError
from speclab.findings.long_table import findings
from speclab.interval_coverage.held import Truth, beside, place
from speclab.lab import BASELINE, Answers, Arm, Lab, Phases, SimulatedDrafter, Speculation, WorkloadName
from speclab.load.closed_loop import CellLog, run_cell
from speclab.record import provenance, store
from speclab.record.cell import Cell
from speclab.record.schema import CellRecord, CellSpec
from speclab.results import lab_tables

CONCURRENCIES = (2, 8, 32, 64)
WORKLOAD: WorkloadName = "chat"
K = 8


def lab_of(name: str, window_s: float = 6.0) -> Lab:
    """Return a simulated lab with short answers and short cells.

    Answer lengths belong to the lab, as they do at temperature 0: they are the same each time it is made.

    Raises
    ------
    UserError
        There is no such lab, or it has no assumptions to simulate it with.
    """
    lab = labs.load(name)
    if lab.simulated is None:
        raise UserError(f"{name} is not simulated", "name a lab with `simulated` in its lab.yml", key="--lab")
    target = lab.simulated.model_copy(update={"answers": {WORKLOAD: Answers(mean_tokens=60, cv=0.5)}})
    return lab.model_copy(
        update={
            "concurrencies": CONCURRENCIES,
            "workloads": (WORKLOAD,),
            "phases": Phases(length_s=window_s + 1.5, drop_first_s=1.0, drop_last_s=0.5),
            "simulated": target,
        }
    )


def arms_of(lab: Lab, name: str) -> tuple[Arm, Arm]:
    """Return the baseline, and an arm turned into an n-gram drafter that pays off at few requests in flight only."""
    drafter = SimulatedDrafter(
        host_ms_per_step=2.5,
        acceptance={WORKLOAD: (0.50, 0.25, 0.125, 0.0625, 0.03, 0.015, 0.008, 0.004)},
    )
    speculation = Speculation(method="ngram", num_speculative_tokens=K, prompt_lookup_min=2, prompt_lookup_max=4)
    arm = lab.arm(name)
    return lab.arm(BASELINE), arm.model_copy(update={"speculation": speculation, "simulated": drafter})


def tables_of_lab(lab: str, arm: str, seed: int) -> lab_tables.Tables:
    """Return the tables of one small lab; the seed shuffles its prompts and decides which drafts are accepted."""
    small = lab_of(lab)
    return lab_tables.of(
        [_cell(small, lab_arm, concurrency, seed) for lab_arm in arms_of(small, arm) for concurrency in CONCURRENCIES]
    )


def intervals(of_labs: Sequence[lab_tables.Tables]) -> pd.DataFrame:
    """Return every interval of some labs beside the truth, as `speclab.interval_coverage.held.intervals` does.

    The truth is that of all labs together: every token of all of them, as one lab with as many repeats.
    """
    as_repeats = [_numbered(tables, index) for index, tables in enumerate(of_labs)]
    together = _findings(*(pd.concat(frames, ignore_index=True) for frames in zip(*as_repeats, strict=True)))
    places = zip(together["finding"], together["concurrency"], strict=True)
    truth = Truth(dict(zip(map(place, *zip(*places, strict=True)), together["value"], strict=True)))
    apart = [_apart(tables, str(index)) for index, tables in enumerate(of_labs)]
    return beside(_findings(*(pd.concat(frames, ignore_index=True) for frames in zip(*apart, strict=True))), truth)


def _numbered(tables: lab_tables.Tables, repeat: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    return tables.cells.assign(repeat=repeat), tables.blocks.assign(repeat=repeat)


def _apart(tables: lab_tables.Tables, source: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    return tables.cells.assign(source=source), tables.blocks.assign(source=source)


def _findings(cells: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    # a lab this small may fail a check by chance; the question here is how often the interval holds the truth
    passed = cells.assign(failed_checks=None)
    k = {str(arm): 0 if arm == BASELINE else K for arm in passed["arm"].unique()}
    table = findings(passed, pd.DataFrame(), k, blocks=blocks)
    return table[table["arm"] != BASELINE]


def _cell(lab: Lab, arm: Arm, concurrency: int, seed: int) -> Cell:
    """Run one cell in virtual time and keep it in memory."""
    opening = simulated.opening(lab, arm, WORKLOAD, seed_key=str(seed))
    prompt_set = prompts.load(WORKLOAD, seed)
    measured: list[tuple[CellLog, EngineIdentity]] = []

    async def run() -> None:
        async with opening.engine() as engine:
            measured.append(
                (await run_cell(engine, prompt_set, concurrency, lab.phases, lab.sampling), engine.identity)
            )

    with asyncio.Runner(loop_factory=opening.loop_factory) as runner:
        runner.run(run())
    log, identity = measured[0]
    spec = CellSpec(
        lab=lab.name, arm=arm.arm, workload=WORKLOAD, concurrency=concurrency, repeat=0, engine="simulated",
        device=identity.device, target=lab.target.model, phases=lab.phases, sampling=lab.sampling,
        speculation=arm.speculation, server=vllm_flags.of(lab, arm), environment=lab.environment,
        simulated_target=lab.simulated, simulated_drafter=arm.simulated, prompts_sha256=prompt_set.sha256,
        code_version="coverage",
    )  # fmt: skip
    record = CellRecord(
        asked=spec,
        asked_sha256=spec.sha256,
        status="ok",
        window_s=lab.phases.window_s,
        readings=tuple(reading.model_copy(update={"at_s": reading.at_s - log.start_s}) for reading in log.readings),
        provenance=provenance.of(identity, provenance.now()),
    )
    table = store.to_table(log, log.warm_up_count(concurrency))
    return Cell(record, store.to_frame(table))
