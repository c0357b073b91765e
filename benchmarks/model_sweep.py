"""Time chapter 10's model: `python benchmarks/model_sweep.py [--sweep]`.

Requests and tokens simulated per second, for one run of each workload at twice the reference load, against the plain
one-token-at-a-time implementation of the tests, whose timestamps must be the same; then the sixteen-row table after
import. With ``--sweep`` the whole sweep too: five workloads, three presets, three devices, with capacity searches.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "replications"))

import plain_serving

from speclab.replications.chapter10 import device_table, sweep
from speclab.replications.chapter10.fleet.simulate import serve
from speclab.replications.chapter10.fleet.workload import draw
from speclab.replications.chapter10.presets import REFERENCE_RATE, SEED, WORKLOADS
from speclab.replications.chapter10.speculation_presets import PAGE, preset_fleet


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweep", action="store_true", help="the whole sweep as well")
    parser.add_argument("--sessions", type=int, default=100, help="sessions of a run")
    arguments = parser.parse_args()

    differ = 0
    totals = {"simulator": 0.0, "plain": 0.0, "requests": 0.0, "tokens": 0.0}
    for workload in WORKLOADS:
        for preset in PAGE:
            fleet = preset_fleet("h100-sxm", preset, workload)
            requests = draw(WORKLOADS[workload], 2 * REFERENCE_RATE[workload], SEED, arguments.sessions)
            began_s = time.perf_counter()
            served = serve(fleet, requests)
            done_s = time.perf_counter()
            rows, _ = plain_serving.serve(fleet, requests)
            plain_s, own_s = time.perf_counter() - done_s, done_s - began_s
            same = served.finish_s.tolist() == [row.finish_s for row in rows]
            differ += not same
            tokens = int(requests.output.sum())
            for name, value in zip(totals, (own_s, plain_s, len(requests), tokens), strict=True):
                totals[name] += value
            print(
                f"{workload:14} {preset:9} {len(requests) / own_s:9,.0f} requests/s {tokens / own_s:11,.0f} tokens/s, "
                f"plainly {tokens / plain_s:9,.0f} tokens/s, {plain_s / own_s:5.1f}x, "
                f"{'same timestamps' if same else 'TIMESTAMPS DIFFER'}"
            )
    print(
        f"all: {totals['requests'] / totals['simulator']:,.0f} requests/s, "
        f"{totals['tokens'] / totals['simulator']:,.0f} tokens/s, {totals['plain'] / totals['simulator']:.1f}x plainly"
    )
    began_s = time.perf_counter()
    rows_of_table = len(device_table())
    print(f"table of {rows_of_table} rows: {1e3 * (time.perf_counter() - began_s):.1f} ms after import")
    if arguments.sweep:
        began_s = time.perf_counter()
        cells = len(sweep())
        print(f"sweep of {cells} values: {time.perf_counter() - began_s:.1f} s")
    return min(differ, 1)


if __name__ == "__main__":
    sys.exit(main())
