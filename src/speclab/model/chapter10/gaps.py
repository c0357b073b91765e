"""Why the 99th percentile of gaps between tokens rises with speculation where prompts stall decoding.

A prompt that is read makes every row wait; those gaps are as long as the prompts take. Speculation ends a request in
fewer passes, so the same tokens share fewer passes and the waits are a larger part of the gaps: once they are more than
one in a hundred, the percentile stands on them, though no wait has become longer.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from speclab.model.chapter10.levers import PAGE, lever_fleet
from speclab.model.chapter10.presets import REFERENCE_RATE, SEED, WORKLOADS
from speclab.model.serving.capacity import Bench
from speclab.model.serving.metrics import latencies

STALL_S = 0.15
"""A gap above this is taken for a stall, s: no decode pass of the page's workloads lasts as long."""


def gaps(device: str = "h100-sxm", workload: str = "offline-batch", stall_s: float = STALL_S) -> pd.DataFrame:
    """Return how many gaps between tokens are stalls, by lever, at the reference load.

    Returns
    -------
    pd.DataFrame
        ``device, workload, lever, gaps, stalls, share, longest_pass_s, itl_p50_s, itl_p99_s, itl_max_s``.
    """
    rows = []
    for lever in PAGE:
        served = Bench(lever_fleet(device, lever, workload), WORKLOADS[workload], SEED).run(REFERENCE_RATE[workload])
        itl = latencies(served).itl
        lengths = [np.subtract(passes.end_s, passes.start_s).max() for passes in served.by_instance if passes.end_s]
        rows.append(
            {
                "device": device,
                "workload": workload,
                "lever": lever,
                "gaps": len(itl),
                "stalls": int((itl > stall_s).sum()),
                "share": float((itl > stall_s).mean()),
                "longest_pass_s": float(max(lengths)),
                "itl_p50_s": float(np.percentile(itl, 50)),
                "itl_p99_s": float(np.percentile(itl, 99)),
                "itl_max_s": float(itl.max()),
            }
        )
    return pd.DataFrame(rows)
