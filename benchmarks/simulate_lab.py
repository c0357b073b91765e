"""Time the simulation of every cell of a lab in one process: `python benchmarks/simulate_lab.py [LAB]`."""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time

import numpy as np

from speclab import lab as labs
from speclab import prompts
from speclab.engines import simulated
from speclab.engines.base import Opening, Reading
from speclab.lab import Lab
from speclab.load.closed_loop import CellLog, run_cell
from speclab.prompts.base import PromptSet


def _simulated(opening: Opening, lab: Lab, prompt_set: PromptSet, concurrency: int) -> tuple[CellLog, Reading]:
    result: list[tuple[CellLog, Reading]] = []

    async def cell() -> None:
        async with opening.engine() as engine:
            log = await run_cell(engine, prompt_set, concurrency, lab.phases, lab.sampling)
            result.append((log, await engine.read()))

    # nothing is returned through the runner: CPython prints a finished main task's result when it restores Ctrl-C
    with asyncio.Runner(loop_factory=opening.loop_factory) as runner:
        runner.run(cell())
    return result[0]


def _peak_memory_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def _row(log: CellLog, window_s: tuple[float, float]) -> tuple[float, float, float]:
    """Step time in ms, tokens per step and tokens per second, from the events inside the window."""
    gaps = np.concatenate([np.diff(answer.event_s) for answer in log.answers])
    inside = [
        (np.asarray(answer.event_s) >= window_s[0]) & (np.asarray(answer.event_s) < window_s[1])
        for answer in log.answers
    ]
    tokens = sum(int(np.asarray(answer.event_tokens)[i].sum()) for answer, i in zip(log.answers, inside, strict=True))
    decode = np.concatenate([np.asarray(answer.event_tokens)[1:] for answer in log.answers])
    return 1e3 * float(gaps.mean()), float(decode.mean()), tokens / (window_s[1] - window_s[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lab", nargs="?", default="lab09")
    parser.add_argument("--workload", action="append", help="only this one; may be given again")
    parser.add_argument("--table", action="store_true", help="print what each cell gave")
    arguments = parser.parse_args()

    lab = labs.load(arguments.lab)
    started_s = time.perf_counter()
    cells = steps = tokens = 0
    for workload in arguments.workload or lab.workloads:
        prompt_set = prompts.load(workload, lab.sampling.seed)
        baseline: dict[int, float] = {}
        for name in lab.arms:
            opening = simulated.opening(lab, lab.arm(name), workload)
            for concurrency in lab.concurrencies:
                log, reading = _simulated(opening, lab, prompt_set, concurrency)
                cells += 1
                steps += int(reading.steps or 0)
                tokens += int(reading.generation_tokens or 0)
                if arguments.table:
                    step_ms, per_step, tok_s = _row(log, lab.phases.window_s)
                    ratio = tok_s / baseline.setdefault(concurrency, tok_s)
                    print(
                        f"{workload:10} {name:12} {concurrency:4} {step_ms:8.3f} ms {per_step:6.3f} tok/step "
                        f"{tok_s:9.1f} tok/s {ratio:5.2f}x"
                    )
    wall_s = time.perf_counter() - started_s
    print(
        f"{lab.name}: {cells} cells of {lab.phases.length_s:g} s in {wall_s:.1f} s ({cells / wall_s:.1f} cells/s), "
        f"{steps / wall_s:,.0f} steps/s, {tokens / wall_s:,.0f} tokens/s, peak memory {_peak_memory_mib():.0f} MiB"
    )


if __name__ == "__main__":
    main()
