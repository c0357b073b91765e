from __future__ import annotations

import pandas as pd
import pytest

from speclab import lab as labs
from speclab.replications import published
from speclab.replications.validation import sensitivity


@pytest.fixture(scope="module")
def on_lab09() -> pd.DataFrame:
    return sensitivity.on_lab09(published.read("lab09"), labs.load("lab09")).set_index("variant")


@pytest.fixture(scope="module")
def on_published() -> pd.DataFrame:
    return sensitivity.on_published(published.read("others_measured")).set_index("variant")


def test_every_option_of_the_model_is_left_out_once(on_lab09: pd.DataFrame) -> None:
    left_out = on_lab09[on_lab09["kind"] == sensitivity.LEFT_OUT]
    assert set(left_out.index) == set(sensitivity.OPTIONS)
    # each of them moves what is predicted
    assert (left_out["draft"] - on_lab09.loc["", "draft"]).abs().min() > 3


def test_the_smoothing_decides_where_lab_9_crosses(on_lab09: pd.DataFrame) -> None:
    crossings = on_lab09.loc[["smoothing 2", "smoothing 2.5", "", "smoothing 3.5", "smoothing 4.5"], "eagle3"]
    assert crossings.is_monotonic_decreasing
    assert (
        crossings.iloc[0]
        > 1.5 * crossings.iloc[2]
        > 2 * on_lab09.loc["no smoothing: the longer of the two times", "eagle3"]
    )
    # the three figures would rather have another: fitted, it meets them exactly
    assert on_lab09.loc["smoothing", "residual"] < 1e-3 < on_lab09.loc["", "residual"]


def test_what_a_roofline_leaves_out_has_its_evidence(on_published: pd.DataFrame) -> None:
    as_is = on_published.loc[""]
    assert on_published.loc["attention reads the context", "EAGLE-3_mean"] > 2 * as_is["EAGLE-3_mean"]
    assert on_published.loc[sensitivity.COVERED, "ngram_worst"] > 4 * as_is["ngram_worst"]
    assert on_published.loc["no smoothing: the longer of the two times", "EAGLE-3_worst"] > 1.5 * as_is["EAGLE-3_worst"]


def test_hidden_launches_mend_the_parts_and_not_the_whole(on_published: pd.DataFrame) -> None:
    as_is, hidden = on_published.loc[""], on_published.loc[sensitivity.HIDDEN]
    assert hidden["drafting"] < 0.6 * as_is["drafting"]
    assert hidden["arithmetic"] < 0.75 < as_is["arithmetic"]
    assert hidden["EAGLE-3_mean"] > as_is["EAGLE-3_mean"]


def test_a_staircase_has_no_slope_to_fit(on_published: pd.DataFrame) -> None:
    # n-gram's draft rate moves a padded step only where it passes a size: the speed-ups do not carry it any more
    assert pd.isna(on_published.loc[sensitivity.PADDED, "EAGLE-3_mean"])
