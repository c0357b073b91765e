"""The whole experiment, which takes minutes, and the file that it writes.

``python -m speclab.interval_coverage.experiment --lab LAB --arm ARM`` names the simulated lab and the arm that the
engine's row is made from.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from speclab import paths, processes
from speclab.errors import UserError
from speclab.findings.spreads import BLOCKS_TO_RESAMPLE
from speclab.interval_coverage import engine_lab
from speclab.interval_coverage.fast_lab import FastLab
from speclab.interval_coverage.held import held, intervals

SEEDS = 200
CHUNK = 10
DIGITS = "%.6g"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the experiment: a lab with a known truth, and in how many blocks its windows are resampled."""

    name: str
    lab: FastLab
    blocks: int = BLOCKS_TO_RESAMPLE


_DRIFTING = 0.05

SCENARIOS = (
    *(Scenario("one repeat", FastLab(), blocks) for blocks in (20, 10, 5, 3)),
    Scenario("three repeats", FastLab(repeats=3)),
    Scenario("each window 5% faster or slower, one repeat", FastLab(drift=_DRIFTING)),
    Scenario("each window 5% faster or slower, three repeats", FastLab(drift=_DRIFTING, repeats=3)),
)
"""In closed form, where the truth is exact."""

ENGINE = "simulated engine, one repeat"
"""The row for the whole chain; its truth is that of all its labs together."""


MAKE = "python -m speclab.interval_coverage.experiment --lab LAB --arm ARM"


def file() -> Path:
    """Return where the experiment keeps its result."""
    return paths.coverage() / "coverage.csv"


def read() -> pd.DataFrame:
    """Return the experiment's last result, as `run` returns it.

    Raises
    ------
    UserError
        There is none.
    """
    if not file().exists():
        raise UserError("no such file", f"make it: {MAKE}", file=file())
    return pd.read_csv(file())


def run(lab: str, arm: str, seeds: int = SEEDS, workers: int | None = None) -> pd.DataFrame:
    """Return how often the truth was held, a row for each scenario and finding.

    Parameters
    ----------
    lab, arm : str
        What the simulated engine serves (`engine_lab.arms_of`).
    seeds : int
        Labs of each scenario.
    workers : int, optional
        Processes; one per core by default.

    Returns
    -------
    pd.DataFrame
        ``scenario, blocks, seeds``, and the columns of `speclab.interval_coverage.held.held`.
    """
    chunks = [range(start, min(start + CHUNK, seeds)) for start in range(0, seeds, CHUNK)]
    with processes.pool(workers or processes.cores()) as pool:
        waiting = [
            (scenario, [pool.submit(intervals, scenario.lab, chunk, scenario.blocks) for chunk in chunks])
            for scenario in SCENARIOS
        ]
        labs = list(pool.map(partial(engine_lab.tables_of_lab, lab, arm), range(seeds), chunksize=CHUNK))
        by_scenario = [
            (scenario.name, scenario.blocks, pd.concat([future.result() for future in results], ignore_index=True))
            for scenario, results in waiting
        ]
    by_scenario.append((ENGINE, BLOCKS_TO_RESAMPLE, engine_lab.intervals(labs)))
    rows = [
        held(scenario_rows).assign(scenario=name, blocks=blocks, seeds=seeds)
        for name, blocks, scenario_rows in by_scenario
    ]
    table = pd.concat(rows, ignore_index=True)
    first = ["scenario", "blocks", "seeds"]
    return table[[*first, *table.columns.difference(first, sort=False)]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment and keep its result."""
    parser = argparse.ArgumentParser(prog=MAKE.partition(" --")[0], description=__doc__)
    parser.add_argument("--lab", required=True, help="a simulated lab of labs/")
    parser.add_argument("--arm", required=True, help="its arm that takes the part of the speculating one")
    parser.add_argument("--out", type=Path, default=file(), help="the table; data/coverage/coverage.csv by default")
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    run(options.lab, options.arm).to_csv(options.out, index=False, float_format=DIGITS)


if __name__ == "__main__":
    main()
