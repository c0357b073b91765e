"""Why the 99th percentile of gaps between tokens rises with speculation where prompts stall decoding.

Reading a prompt makes every decoding row wait. Offline, nearly all requests are admitted before decoding begins;
those that find no room in the KV cache come later, one at a time, and each stalls every row. A drafter's
weights and KV take room, so more requests come later, and the stalls, more than one gap in a hundred, carry the
percentile. With the drafter's memory free there are about as many as in the baseline: the number shows mostly that
memory.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from speclab.replications.chapter10.fleet.capacity import LoadTest
from speclab.replications.chapter10.fleet.metrics import latencies
from speclab.replications.chapter10.presets import REFERENCE_RATE, SEED, WORKLOADS
from speclab.replications.chapter10.speculation_presets import PAGE, preset_fleet

STALL_S = 0.15
"""A longer gap counts as a stall, s: no decode pass of the page's workloads takes that long."""


def gaps(device: str = "h100-sxm", workload: str = "offline-batch", stall_s: float = STALL_S) -> pd.DataFrame:
    """Return how many gaps between tokens are stalls, by preset, at the reference load.

    Returns
    -------
    pd.DataFrame
        ``device, workload, lever, drafter_memory, kv_room_tokens, admitted_late, gaps, stalls, share, longest_pass_s,
        itl_p50_s, itl_p99_s, itl_max_s``. `drafter_memory` is ``charged``, or ``free``: as if the drafter took no room;
        `admitted_late` counts requests whose prompt was read after their instance had begun to decode.
    """
    room = preset_fleet(device, "baseline", workload).kv_room
    cases = [("baseline", "charged"), *((preset, memory) for preset in PAGE[1:] for memory in ("charged", "free"))]
    rows = []
    for preset, memory in cases:
        fleet = preset_fleet(device, preset, workload)
        if memory == "free":
            fleet = fleet.model_copy(update={"kv_tokens": room})
        served = LoadTest(fleet, WORKLOADS[workload], SEED).run(REFERENCE_RATE[workload])
        itl = latencies(served).itl
        working = [(number, passes) for number, passes in enumerate(served.by_instance) if passes.end_s]
        late = sum(
            int((served.first_s[served.instance == number] > passes.start_s[0]).sum()) for number, passes in working
        )
        rows.append(
            {
                "device": device,
                "workload": workload,
                "lever": preset,
                "drafter_memory": memory,
                "kv_room_tokens": fleet.kv_room,
                "admitted_late": late,
                "gaps": len(itl),
                "stalls": int((itl > stall_s).sum()),
                "share": float((itl > stall_s).mean()),
                "longest_pass_s": max(float(np.subtract(passes.end_s, passes.start_s).max()) for _, passes in working),
                "itl_p50_s": float(np.percentile(itl, 50)),
                "itl_p99_s": float(np.percentile(itl, 99)),
                "itl_max_s": float(itl.max()),
            }
        )
    return pd.DataFrame(rows)
