"""A lab's findings beside the figures that Lab 9 published: each published row, ours, and the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from speclab.findings.pairs import OK
from speclab.lab import BASELINE
from speclab.roofline.devices import device
from speclab.roofline.transformers import transformer

COLUMNS = [
    "id",
    "quantity",
    "arm",
    "workload",
    "concurrency",
    "unit",
    "published",
    "ours",
    "difference",
    "role",
    "source",
]

Value = Callable[..., float]
"""Value of a finding at one place (``value("step_time", arm="baseline", workload="chat", concurrency=1)``)."""

EAGLE, DRAFT, NGRAM = "eagle3-k3", "draft-1b-k3", "ngram-k8"
WORKLOADS = ("chat", "completion", "revision")


def against(
    findings: pd.DataFrame, published: pd.DataFrame, prompt_tokens: Mapping[str, float], *, is_measured: bool = False
) -> pd.DataFrame:
    """Return every published figure of Lab 9 with the same figure from a lab's findings.

    Parameters
    ----------
    findings : pd.DataFrame
        As `speclab.findings.long_table.findings` makes them.
    published : pd.DataFrame
        As `speclab.replications.published.read` gives it.
    prompt_tokens : mapping of str to float
        Mean prompt length of each workload, tokens.
    is_measured : bool
        Whether the findings were measured: then nothing published but the prompts went into them.

    Returns
    -------
    pd.DataFrame
        `COLUMNS`; ``difference`` is ours over published, less 1; ``role`` says what the comparison is worth
        (`ROLES`). ``ours`` is NaN where the lab does not have the figure.
    """

    def value(finding: str, **where: object) -> float:
        rows = findings[findings["finding"] == finding]
        for column, expected in where.items():
            rows = rows[rows[column] == expected]
        resolved = rows[rows["status"] == OK]
        return float(resolved["value"].iloc[0]) if len(resolved) == 1 else float("nan")

    def ours(row: pd.Series) -> float:
        if row["id"] in DERIVED:
            return DERIVED[row["id"]](value)
        if row["id"] in PROMPTS:
            return prompt_tokens.get(PROMPTS[row["id"]], float("nan"))
        if row["finding"] == "acceptance_drift":
            drifts = findings[findings["finding"] == "acceptance_drift"]["value"]
            return float(drifts.max())
        if pd.isna(row["finding"]):
            return float("nan")
        keys = ("arm", "workload", "concurrency")
        return value(row["finding"], **{key: row[key] for key in keys if pd.notna(row[key])})

    table = published.rename(columns={"value": "published"})
    table["ours"] = [ours(row) for _, row in table.iterrows()]
    table["difference"] = table["ours"] / table["published"] - 1
    table["role"] = table["id"].map(MEASURED_ROLES if is_measured else ROLES).fillna("result")
    return table[COLUMNS]


def _ridge(_: Value) -> float:
    h100 = device("h100-sxm")
    return h100.peak_flop_per_s / h100.peak_byte_per_s


def _weight_read_ms(shape: str) -> float:
    """Time to read a model's 16-bit weights once at the peak bandwidth, ms; embeddings included, as the report does."""
    model = transformer(shape)
    return 1e3 * model.resident_bytes / device("h100-sxm").peak_byte_per_s


def _draft_floor(_: Value) -> float:
    # Llama 3.2 1B ties its embedding and output head: one copy is read, not the two that `resident_bytes` counts
    return 1e3 * 2 * transformer("llama-3.2-1b").matmul_parameters / device("h100-sxm").peak_byte_per_s


def _at(value: Value, finding: str, arm: str, workload: str = "chat", concurrency: int = 1, **more: object) -> float:
    return value(finding, arm=arm, workload=workload, concurrency=concurrency, **more)


def _position(value: Value, workload: str, position: int) -> float:
    # it does not depend on the concurrency, and the fullest cell has the most drafts
    return _at(value, "acceptance_by_position", NGRAM, workload, concurrency=256, position=position)


def _spread(value: Value, of: Callable[[str], float]) -> float:
    figures = [of(workload) for workload in WORKLOADS]
    return max(figures) / min(figures)


def _implied_extra_ms(value: Value, workload: str) -> float:
    return _at(value, "implied_step_time", NGRAM, workload) - _at(value, "time_per_output_token", BASELINE, workload)


def _drafting_ratio(value: Value) -> float:
    return _at(value, "drafting_time_per_position", DRAFT) / _at(value, "drafting_time_per_position", EAGLE)


def _throughput_ratio(value: Value, arm: str, other: str, workload: str) -> float:
    return _at(value, "system_throughput", arm, workload) / _at(value, "system_throughput", other, workload)


def _doubling(value: Value) -> float:
    top, half = (_at(value, "system_throughput", BASELINE, concurrency=c) for c in (256, 128))
    return top / half


DERIVED: dict[str, Callable[[Value], float]] = {
    "b02": lambda _: _weight_read_ms("llama-3-8b"),
    "b03": lambda value: _weight_read_ms("llama-3-8b") / _at(value, "time_per_output_token", BASELINE),
    "b04": _doubling,
    "b05": lambda value: _at(value, "activity_occupancy", BASELINE, concurrency=256),
    "c03": lambda value: _ridge(value) / 4,
    "c04": _ridge,
    "a04": lambda value: (
        1 - _at(value, "reported_acceptance_length", EAGLE) / _at(value, "reported_acceptance_length", DRAFT)
    ),
    "d03": _draft_floor,
    "d05": _drafting_ratio,
    "d06": lambda value: 1 - 1 / _drafting_ratio(value),
    "d07": lambda value: _throughput_ratio(value, EAGLE, DRAFT, "chat"),
    "n07": lambda value: 1 - _at(value, "speed_up", NGRAM),
    "n08": lambda value: _spread(value, lambda workload: _implied_extra_ms(value, workload)) - 1,
    "n09": lambda value: _spread(value, lambda workload: _at(value, "reported_acceptance_length", NGRAM, workload)),
    "n10": lambda value: _position(value, "chat", 7) / _position(value, "chat", 0),
    "n11": lambda value: sum(_position(value, "chat", position) for position in range(4, 8)),
    "n12": lambda value: _position(value, "revision", 7) / _position(value, "revision", 0),
    "r01": lambda value: _throughput_ratio(value, EAGLE, NGRAM, "revision"),
}
"""Published figures that are no finding of their own, by their id in ``data/published/lab09.csv``."""

PROMPTS = {"w01": "chat", "w02": "completion", "w03": "revision"}

_INPUTS = ("a02", "a03", "d02", "d04", "n06", "n07", "n09", "n10", "n11", "n12", "r01", "w01", "w02", "w03")
_FOLLOW = ("a04", "d01", "d05", "d06", "d07", "n01", "n02", "n03", "n04", "n05", "n08")
_ARITHMETIC = ("b02", "c03", "c04", "d03")
ROLES = {
    **dict.fromkeys(_INPUTS, "input"),
    **dict.fromkeys(_FOLLOW, "follows from inputs"),
    **dict.fromkeys(_ARITHMETIC, "arithmetic"),
    "a01": "bound",
}
"""How much the simulated lab's figure is worth beside the published one.

An *input* was put into the lab's files (or chosen to give this result, or is the prompts themselves): agreement shows
only that the simulator follows its inputs. What *follows from inputs* shows no more. *Arithmetic* is two
constants divided. A *bound* was published as "less than", and ours is the noise of sampling. The rest are results.
"""
MEASURED_ROLES = {**dict.fromkeys(PROMPTS, "input"), **dict.fromkeys(_ARITHMETIC, "arithmetic"), "a01": "bound"}
"""The same for a measured lab: nothing published but the prompts went into it."""
