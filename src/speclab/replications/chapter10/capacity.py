"""Capacity over several seeds, and with drafting charged for what the page leaves free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as student

from speclab.errors import UserError
from speclab.processes import spread
from speclab.replications.chapter10.fleet.fleet import Charges
from speclab.replications.chapter10.presets import SEED, WORKLOADS
from speclab.replications.chapter10.searching import SLOWEST, check_known, goodput
from speclab.replications.chapter10.speculation_presets import PAGE
from speclab.roofline.step import STEP_OVERHEAD_S

SEEDS = tuple(range(1, 9))
LEVEL = 0.95
CHARGED = {
    "none": Charges(),
    "launches": Charges(launch_s=STEP_OVERHEAD_S),
    "all-reduces": Charges(all_reduce=True),
    "both": Charges(launch_s=STEP_OVERHEAD_S, all_reduce=True),
}
"""What the drafter's passes pay besides their work; ``none`` is the page's. A launch costs the target's overhead."""


def capacity_over_seeds(
    devices: Sequence[str] = ("h100-sxm",),
    workloads: Sequence[str] = tuple(WORKLOADS),
    presets: Sequence[str] = PAGE,
    *,
    seeds: Sequence[int] = SEEDS,
    workers: int | None = None,
) -> pd.DataFrame:
    """Return goodput at capacity over several seeds, and its change from the baseline of the same seed.

    A seed decides arrivals, lengths and draws of acceptance alike.

    Parameters
    ----------
    devices, workloads, presets : sequence of str
        Slugs; the baseline is run in any case.
    seeds : sequence of int
        Two or more.
    workers : int, optional
        Processes; one per core by default.

    Returns
    -------
    pd.DataFrame
        ``device, workload, lever, metric, mean, low, high, least, most, n``. `metric` is ``goodput_per_gpu``
        (requests/s) or ``change`` (relative, paired by seed; none for the baseline). `low` and `high` are a 95% t
        interval of the mean, `least` and `most` the range over seeds.

    Raises
    ------
    UserError
        An unknown device, workload or preset, or fewer than two seeds.
    """
    if len(set(seeds)) < 2:
        raise UserError(f"found seeds {list(seeds)}", "an interval needs two or more", key="seeds")
    presets = ("baseline", *(preset for preset in presets if preset != "baseline"))
    check_known(devices, workloads, presets)
    order = [
        (d, w, preset, seed) for w in SLOWEST if w in workloads for d in devices for preset in presets for seed in seeds
    ]
    goodputs = dict(zip(order, spread(goodput, [(*point, Charges()) for point in order], workers), strict=True))
    rows = []
    for device in devices:
        for workload in workloads:
            plain = np.array([goodputs[device, workload, "baseline", seed] for seed in seeds])
            for preset in presets:
                values = np.array([goodputs[device, workload, preset, seed] for seed in seeds])
                keys = {"device": device, "workload": workload, "lever": preset}
                rows.append({**keys, "metric": "goodput_per_gpu", **_interval(values)})
                if preset != "baseline":
                    rows.append({**keys, "metric": "change", **_interval(values / plain - 1)})
    return pd.DataFrame(rows)


def charges(
    device: str = "h100-sxm",
    workloads: Sequence[str] = tuple(WORKLOADS),
    presets: Sequence[str] = PAGE[1:],
    *,
    seed: int = SEED,
    workers: int | None = None,
) -> pd.DataFrame:
    """Return goodput at capacity with the drafter's launches and all-reduces free, as on the page, and charged.

    Returns
    -------
    pd.DataFrame
        ``device, workload, lever, charged, goodput_per_gpu, change``; `charged` is one of `CHARGED`, `change` relative
        to the baseline, which no charge touches.
    """
    check_known((device,), workloads, presets)
    charged = [preset for preset in presets if preset != "baseline"]
    order = [(w, "baseline", "none") for w in SLOWEST if w in workloads]
    order += [(w, preset, name) for w in SLOWEST if w in workloads for preset in charged for name in CHARGED]
    tasks = [(device, workload, preset, seed, CHARGED[name]) for workload, preset, name in order]
    goodputs = dict(zip(order, spread(goodput, tasks, workers), strict=True))
    return pd.DataFrame(
        [
            {
                "device": device,
                "workload": workload,
                "lever": preset,
                "charged": name,
                "goodput_per_gpu": goodputs[workload, preset, name],
                "change": goodputs[workload, preset, name] / goodputs[workload, "baseline", "none"] - 1,
            }
            for workload in workloads
            for preset in charged
            for name in CHARGED
        ]
    )


def _interval(values: np.ndarray) -> dict[str, float]:
    n = len(values)
    mean, spread_ = float(values.mean()), float(values.std(ddof=1))
    half = float(student.ppf((1 + LEVEL) / 2, n - 1)) * spread_ / np.sqrt(n)
    return {
        "mean": mean,
        "low": mean - half,
        "high": mean + half,
        "least": float(values.min()),
        "most": float(values.max()),
        "n": n,
    }
