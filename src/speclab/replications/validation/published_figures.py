"""Other people's figures that the model is compared with, from the tables of ``data/published``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd

from speclab.predict.traffic import closed_loop

Method = Literal["EAGLE-3", "EAGLE", "ngram"]
NAMES: dict[str, Method] = {"eagle3": "EAGLE-3", "eagle": "EAGLE", "ngram": "ngram"}
"""A method's name here, by its name in the table of published measurements."""

K = 3
"""Draft positions of the published speed-ups."""

TRAFFIC = {
    # question and answer of the first five requests of the public traces (github.com/SpecDecode-Bench/simulator)
    "GSM8K": closed_loop(117, 230, 0.4),
    # means of the vLLM paper (arXiv:2309.06180); their spread as in inference-tradeoffs-explained
    "ShareGPT": closed_loop(161.31, 337.99, 1.0),
}
"""Assumed lengths: the source prints none."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One published speed-up.

    Attributes
    ----------
    method, dataset : str
    batch : float
        Rows of a step.
    speed_up : float
    """

    method: Method
    dataset: str
    batch: float
    speed_up: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything in one source that the model is compared with.

    Attributes
    ----------
    speed_ups : tuple of Figure
    tokens_per_step : dict of (method, dataset) to float
        Mean over requests.
    first_accepted : dict of str to float
        Share of all row-steps in which n-gram's first draft token was accepted, by dataset.
    """

    speed_ups: tuple[Figure, ...]
    tokens_per_step: dict[tuple[str, str], float]
    first_accepted: dict[str, float]

    def of(self, method: str, dataset: str) -> list[Figure]:
        """Return the speed-ups of one method on one dataset, by batch size."""
        speed_ups = [figure for figure in self.speed_ups if (figure.method, figure.dataset) == (method, dataset)]
        return sorted(speed_ups, key=lambda figure: figure.batch)


def figures(table: pd.DataFrame) -> Figures:
    """Return what ``data/published/others_measured.csv`` has from arXiv:2601.11580 and its traces, k = 3."""
    published = table[table["method"].isin(NAMES) & (table["k"] == K) & table["dataset"].isin(TRAFFIC)]
    speed_ups = published[published["id"].str.startswith("f1-")].to_dict("records")
    lengths = published[published["id"].str.startswith("tm-")].to_dict("records")
    first = published[
        published["id"].str.startswith("tp-")
        & (published["method"] == "ngram")
        & (published["position"] == 0)
        & published["finding"].isna()
    ]
    return Figures(
        tuple(
            Figure(NAMES[row["method"]], row["dataset"], float(row["concurrency"]), float(row["value"]))
            for row in speed_ups
        ),
        {(NAMES[row["method"]], row["dataset"]): float(row["value"]) for row in lengths},
        {row["dataset"]: float(row["value"]) for row in first.to_dict("records")},
    )


@dataclass(frozen=True, slots=True)
class Share:
    """One published share of step time.

    Attributes
    ----------
    method : str
        ``baseline`` for none.
    part : str
        drafting, verification, sampling or other.
    batch, share : float
    """

    method: str
    part: str
    batch: float
    share: float


def shares(table: pd.DataFrame) -> list[Share]:
    """Return the shares of step time of ``data/published/others_measured.csv`` (arXiv:2601.11580, Figure 4)."""
    return [
        Share(
            NAMES.get(row["method"], "baseline"),
            str(row["quantity"]).rsplit(" ", 1)[1],
            float(row["concurrency"]),
            float(row["value"]),
        )
        for row in table[table["id"].str.startswith("f4-")].to_dict("records")
    ]


@dataclass(frozen=True, slots=True)
class ByK:
    """Time per token at batch 1 for several k (vllm-project/vllm#20780).

    Attributes
    ----------
    method : str
    k : tuple of int
    tokens_per_step, time_per_output_token_ms : tuple of float
        An entry for each k.
    baseline_ms : float
        Time per token without speculation.
    """

    method: Method
    k: tuple[int, ...]
    tokens_per_step: tuple[float, ...]
    time_per_output_token_ms: tuple[float, ...]
    baseline_ms: float


def figures_by_k(table: pd.DataFrame, extras: pd.DataFrame, method: Method) -> ByK:
    """Return vllm-project/vllm#20780 by one method (``others_measured.csv``; its baseline: ``model_errors.csv``)."""
    published = table[table["method"].map(NAMES) == method]
    lengths = published[published["id"].str.startswith("i20780a-")].set_index("k")["value"].sort_index()
    times = published[published["id"].str.startswith("i20780t-")].set_index("k")["value"].sort_index()
    baseline = extras.set_index("id")["value"].astype(float)["i20780t-none"]
    k = tuple(int(positions) for positions in lengths.index)
    return ByK(method, k, tuple(lengths.astype(float)), tuple(times.astype(float)), float(baseline))
