"""Five workloads by preset by device: the metrics of each point, and its change from the baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from speclab.processes import spread
from speclab.replications.chapter10.fleet.capacity import LoadTest
from speclab.replications.chapter10.fleet.metrics import METRICS, at_capacity, at_load, attainment
from speclab.replications.chapter10.marks import marks, size, verdict
from speclab.replications.chapter10.presets import DEVICES, REFERENCE_RATE, SATURATING, SEED, WORKLOADS
from speclab.replications.chapter10.searching import SLOWEST, capacity, check_known
from speclab.replications.chapter10.speculation_presets import CUT_OFF_ROWS, PAGE, assumed, preset_fleet

MULTIPLES = {"slo_0_5x": 0.5, "slo_1x": 1.0, "slo_2x": 2.0, "slo_4x": 4.0}
"""Columns of SLO attainment at the reference load, by how much both SLOs are relaxed."""


def points(
    devices: Sequence[str] = DEVICES,
    workloads: Sequence[str] = tuple(WORKLOADS),
    presets: Sequence[str] = PAGE,
    *,
    cut_off_rows: int = CUT_OFF_ROWS,
    workers: int | None = None,
) -> pd.DataFrame:
    """Return all metrics of each configuration, one a row.

    Parameters
    ----------
    devices, workloads, presets : sequence of str
        Slugs.
    cut_off_rows : int
        Where ``mtp-cut-off`` stops speculating.
    workers : int, optional
        Processes; one per core by default.

    Returns
    -------
    pd.DataFrame
        ``device, workload, lever, capacity_rate, runs, goodput_per_gpu, tok_s, usd_per_mtok, j_per_tok`` at capacity;
        ``reference_rate, ttft_p50_s, ttft_p99_s, tpot_p50_s, tpot_p99_s, itl_p50_s, itl_p99_s, tokens_per_pass,
        draft_share, slo_0_5x, slo_1x, slo_2x, slo_4x`` at the reference load; ``assumed``, what acceptance rests on.
        NaN where no load was carried. Rates are sessions/s.

    Raises
    ------
    UserError
        An unknown device, workload or preset (the known ones are listed), or a model that does not fit.
    """
    check_known(devices, workloads, presets)
    assumed("mtp-cut-off", workloads[0], cut_off_rows)
    for device in devices:
        for preset in presets:
            preset_fleet(device, preset, workloads[0], cut_off_rows=cut_off_rows)
    order = [(device, workload, preset) for device in devices for workload in workloads for preset in presets]
    slowest_first = sorted(order, key=lambda key: SLOWEST.index(key[1]))
    rows = spread(_point, [(*key, cut_off_rows) for key in slowest_first], workers)
    by_key = dict(zip(slowest_first, rows, strict=True))
    return pd.DataFrame([by_key[key] for key in order])


def sweep(
    devices: Sequence[str] = DEVICES,
    workloads: Sequence[str] = tuple(WORKLOADS),
    presets: Sequence[str] = PAGE,
    *,
    cut_off_rows: int = CUT_OFF_ROWS,
    workers: int | None = None,
) -> pd.DataFrame:
    """Return the six metrics of each configuration and how far each is from the baseline: `compared` of `points`.

    The baseline is run even where `presets` does not name it; its rows are then left out.
    """
    run = presets if "baseline" in presets else ("baseline", *presets)
    table = compared(points(devices, workloads, run, cut_off_rows=cut_off_rows, workers=workers))
    return table[table["lever"].isin(presets)].reset_index(drop=True)


def compared(points: pd.DataFrame) -> pd.DataFrame:
    """Return points as a long table, each value beside the baseline's.

    Parameters
    ----------
    points : pd.DataFrame
        As the function `points` returns them, the baseline among them.

    Returns
    -------
    pd.DataFrame
        ``device, workload, lever, metric, value, change, mark, verdict, size``. `change` is relative to the baseline on
        the same device and workload, null for the baseline itself; `mark` holds the caveats
        (`chapter10.marks`), `verdict` is better, worse or same, `size` the number of arrows, 0 to 3.
    """
    baseline = points[points["lever"] == "baseline"].set_index(["device", "workload"])
    rows = []
    for point in points.to_dict("records"):
        reference = baseline.loc[(point["device"], point["workload"])]
        goodput_change = point["goodput_per_gpu"] / reference["goodput_per_gpu"] - 1
        for metric in METRICS:
            plain = point["lever"] == "baseline"
            change = np.nan if plain else (point[metric] - reference[metric]) / reference[metric]
            rows.append(
                {
                    "device": point["device"],
                    "workload": point["workload"],
                    "lever": point["lever"],
                    "metric": metric,
                    "value": point[metric],
                    "change": change,
                    "mark": " ".join(marks(point["device"], point["lever"], metric, goodput_change)),
                    "verdict": None if plain else verdict(metric, change),
                    "size": size(change),
                }
            )
    return pd.DataFrame(rows)


def _point(device: str, workload: str, preset: str, cut_off_rows: int) -> dict[str, object]:
    fleet = preset_fleet(device, preset, workload, cut_off_rows=cut_off_rows)
    bench = LoadTest(fleet, WORKLOADS[workload], SEED)
    reference = bench.run(REFERENCE_RATE[workload])
    rate, full, runs = capacity(bench, workload)
    is_saturated = workload in SATURATING
    none = dict.fromkeys(("goodput_per_gpu", "tok_s", "usd_per_mtok", "j_per_tok"), np.nan)
    return {
        "device": device,
        "workload": workload,
        "lever": preset,
        "capacity_rate": np.nan if rate is None else rate,
        "runs": runs,
        **(none if full is None else at_capacity(full, fleet, saturated=is_saturated)),
        "reference_rate": REFERENCE_RATE[workload],
        **at_load(reference),
        **{name: attainment(reference, WORKLOADS[workload], by) for name, by in MULTIPLES.items()},
        "assumed": assumed(preset, workload, cut_off_rows).source,
    }
