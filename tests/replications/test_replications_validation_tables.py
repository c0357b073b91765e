from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from speclab.predict.errors import SHARE, SPEED_UP, Predicted, summed
from speclab.predict.fit import Fit, Place
from speclab.predict.parameters import H100_8B, MEANINGS
from speclab.replications import published
from speclab.replications.validation import tables as model_tables


def predicted(cell: str, measured: float, said: float, figure: str = SPEED_UP) -> Predicted:
    return Predicted(
        "arXiv:2601.11580, Figure 1", "Llama", "H100", "EAGLE-3", 3, "GSM8K", figure, cell, measured, said, "other"
    )


def test_errors_of_shares_are_points_and_others_percent() -> None:
    found = summed([predicted("batch 1", 2.0, 2.1), predicted("batch 1", 0.2, 0.15, SHARE)])
    shown = model_tables.errors(found)
    assert shown["worst"].tolist() == ["+5.0%", "-5.0 points"]
    assert shown["mean error"].tolist() == ["5.0%", "5.0 points"]


def test_the_bar_stands_beside_all_cells_of_a_method() -> None:
    found = summed([predicted("batch 1", 1.0, 1.02), predicted("batch 2", 1.0, 0.96)])
    bar = model_tables.beside_the_bar(found, published.read("model_errors").query("method == 'eagle3'")).iloc[0]
    assert bar["ours, mean"] == pytest.approx(0.03)
    assert bar["ours, worst"] == pytest.approx(-0.04)
    assert bar[["published simulator, mean", "published simulator, worst"]].tolist() == [0.044, -0.116]


def test_shares_stand_published_before_the_model_s() -> None:
    rows = [predicted(f"batch {at}", 0.25, 0.2, SHARE) for at in (1, 64, 128, 512)]
    shown = model_tables.shares(rows)
    assert shown[["batch 1", "batch 512"]].iloc[0].tolist() == ["25% / 20%", "25% / 20%"]


def test_parameters_say_what_was_fitted_and_what_was_held() -> None:
    fit = Fit(
        H100_8B, ("flop_per_s",), ("overhead_s", "token_s"), np.diag([0.1**2, 0.2**2, 0.5**2]), {}, 1.0,
        (Place(1, 1, 1),), "x",
    )  # fmt: skip
    shown = model_tables.parameters({"a fit": fit}).set_index("parameter")
    assert shown.index.tolist() == list(MEANINGS)
    assert shown.loc["flop_per_s", "a fit"] == "544 TFLOP/s ± 10%"
    assert shown.loc["overhead_s", "a fit"] == "1 ms (held)"
    assert shown.loc["token_s", ["a fit", "plausible"]].tolist() == ["2 µs (held)", "0.7 µs to 6 µs"]
    assert shown.loc["launch_s", "a fit"] == model_tables.NOTHING


def test_a_crossover_beyond_the_range_is_words() -> None:
    table = pd.DataFrame(
        {
            "kind": ["a", "b"],
            "variant": ["x", "y"],
            "throughput": [0.01, np.nan],
            "eagle3": [np.inf, 207.4],
            "draft": [0.0, 1.0],
        }
    )
    shown = model_tables.variants(table)
    assert shown["EAGLE-3 crosses"].tolist() == ["not up to 512", "207"]
    assert shown["draft model crosses"].tolist() == ["never above 1", "1"]
    assert shown["EAGLE-3's throughput at 128"].tolist() == ["+1.0%", model_tables.NOTHING]
