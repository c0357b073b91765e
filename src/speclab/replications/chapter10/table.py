"""The table behind the page: what a token costs, with speculation and without, by device, context and batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from speclab.config import validated
from speclab.replications.chapter10.fleet.fleet import AssumedSpeculation, Fleet
from speclab.roofline.devices import Device, together
from speclab.roofline.devices import device as find_device
from speclab.roofline.forward_pass import decode, verify
from speclab.roofline.step import Rows, StepTime

DEVICES = ("h100-sxm", "a100-sxm")
CONTEXTS = (512, 2048)
BATCHES = (1, 32, 128, 512)


def device_table(
    devices: Sequence[str] = DEVICES,
    contexts: Sequence[int] = CONTEXTS,
    batches: Sequence[int] = BATCHES,
    *,
    target: str = "llama-3-8b",
    drafter: str = "mtp-head-8b",
    k: int = 3,
    alpha: float = 0.7,
    gpus: int = 1,
    must_fit: bool = False,
) -> pd.DataFrame:
    """Return what a token costs with and without speculation: roofline only, no queue.

    Parameters
    ----------
    devices, contexts, batches : sequence
        Slugs, tokens cached of each row, rows. The page's sixteen rows by default.
    target, drafter : str
        Shapes.
    k, alpha : int, float
        Draft positions and the acceptance of each, assumed.
    gpus : int
        GPUs in tensor parallel.
    must_fit : bool
        Whether to refuse a batch that exceeds the memory. Two of the page's rows do (512 rows at context 2048), so by
        default it is only reported.

    Returns
    -------
    pd.DataFrame
        ``device, context, batch, plain_ms_per_token, speculative_ms_per_token, plain_bound, verify_bound, speed_up``;
        the steps behind them, ``plain_ms, verify_ms, drafting_ms`` (overhead included), and ``plain_j_per_token,
        speculative_j_per_token``, power at rest included; operations per byte of the two passes, and the device's
        ridge; ``kv_tokens`` needed, ``kv_room_tokens`` available, ``fits_memory``.

    Raises
    ------
    UserError
        An unknown device or shape, k below 1, alpha outside [0, 1], GPUs that do not divide the heads, or a batch that
        must fit and does not.
    """
    rows = []
    drafts = validated(AssumedSpeculation, {"drafter": drafter, "k": k, "alpha": alpha})
    for slug in devices:
        find_device(slug)
        common = {"device": slug, "target": target, "gpus": gpus}
        plain = validated(Fleet, common)
        speculative = validated(Fleet, {**common, "speculation": drafts})
        machine, shape = together(find_device(slug), gpus), plain.step_model.target
        for context in contexts:
            for batch in batches:
                if must_fit:
                    speculative.check_batch(batch, context)
                cached = batch * context
                off = plain.step_model.step(Rows(batch, cached))
                on = speculative.step_model.step(Rows(batch, cached, batch, cached))
                plain_work, verify_work = decode(shape, batch, cached), verify(shape, batch, cached, k)
                off_s, on_s = off.seconds / batch, on.seconds / (batch * drafts.tokens_per_pass)
                rows.append(
                    {
                        "device": slug,
                        "context": context,
                        "batch": batch,
                        "plain_ms_per_token": off_s * 1e3,
                        "speculative_ms_per_token": on_s * 1e3,
                        "plain_bound": off.bound,
                        "verify_bound": on.bound,
                        "speed_up": off_s / on_s,
                        "plain_ms": off.seconds * 1e3,
                        "verify_ms": (on.seconds - on.drafting_s) * 1e3,
                        "drafting_ms": on.drafting_s * 1e3,
                        "plain_j_per_token": _joules(off, machine) / batch,
                        "speculative_j_per_token": _joules(on, machine) / (batch * drafts.tokens_per_pass),
                        "plain_flop_per_byte": plain_work.flops / plain_work.bytes,
                        "verify_flop_per_byte": verify_work.flops / verify_work.bytes,
                        "ridge_flop_per_byte": machine.ridge_flop_per_byte,
                        "kv_tokens": cached,
                        "kv_room_tokens": speculative.kv_room,
                        "fits_memory": cached <= speculative.kv_room,
                    }
                )
    return pd.DataFrame(rows)


def _joules(step: StepTime, machine: Device) -> float:
    return step.energy_j + step.link_j + machine.idle_w * machine.gpus * step.seconds


def cut_offs(
    devices: Sequence[str] = (*DEVICES, "h200-sxm", "b200"),
    contexts: Sequence[int] = (512, 1024, 2048, 4096),
    *,
    target: str = "llama-3-8b",
    drafter: str = "mtp-head-8b",
    k: int = 3,
    alpha: float = 0.7,
    gpus: int = 1,
) -> pd.DataFrame:
    """Return the batch size below which speculation pays: where to cut it off, among batches that fit in memory.

    Parameters are those of `device_table`.

    Returns
    -------
    pd.DataFrame
        ``device, context, break_even_rows, rows_that_fit``; the first is the fewest rows at which speculation no
        longer makes a token cheaper, NaN where every batch that fits gains.
    """
    drafts = validated(AssumedSpeculation, {"drafter": drafter, "k": k, "alpha": alpha})
    rows = []
    for slug in devices:
        find_device(slug)
        common = {"device": slug, "target": target, "gpus": gpus}
        plain, fleet = validated(Fleet, common), validated(Fleet, {**common, "speculation": drafts})
        off, on = plain.step_model, fleet.step_model
        for context in contexts:
            fitting = fleet.kv_room // context
            losing = (
                batch
                for batch in range(1, fitting + 1)
                for cached in [batch * context]
                if off.seconds(Rows(batch, cached)) * drafts.tokens_per_pass
                <= on.seconds(Rows(batch, cached, batch, cached))
            )
            rows.append(
                {
                    "device": slug,
                    "context": context,
                    "break_even_rows": float(next(losing, math.nan)),
                    "rows_that_fit": fitting,
                }
            )
    return pd.DataFrame(rows)
