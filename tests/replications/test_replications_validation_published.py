from __future__ import annotations

import pandas as pd
import pytest

from speclab.errors import UserError
from speclab.predict.parameters import H100_8B
from speclab.replications import published
from speclab.replications.validation.published import by_k, calibrated, draft_rate, predicted
from speclab.replications.validation.published_figures import Figure, Figures, figures, figures_by_k, shares


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return published.read("others_measured")


@pytest.fixture(scope="module")
def found(table: pd.DataFrame) -> Figures:
    return figures(table)


def test_what_the_sources_print(found: Figures) -> None:
    # arXiv:2601.11580, Figure 1: four batch sizes, three methods, two datasets
    assert len(found.speed_ups) == 24
    assert [each.batch for each in found.of("EAGLE-3", "GSM8K")] == [1, 16, 64, 128]
    assert found.of("EAGLE-3", "ShareGPT")[-1].speed_up == 1.296
    assert found.tokens_per_step["EAGLE-3", "GSM8K"] == 2.385
    assert found.first_accepted == {"GSM8K": 0.085, "ShareGPT": 0.16}


def test_shares_of_a_step_add_up(table: pd.DataFrame) -> None:
    found = shares(table)
    assert len(found) == 48  # three methods, four batch sizes, four parts
    for method in ("baseline", "EAGLE-3", "ngram"):
        for batch in (1, 64, 128, 512):
            of = [each.share for each in found if (each.method, each.batch) == (method, batch)]
            assert sum(of) == pytest.approx(1, abs=0.005)


def test_what_stands_besides_names_its_source() -> None:
    besides = published.read("model_errors")
    assert besides["id"].is_unique
    assert besides["source"].str.startswith("https://github.com/").all()
    assert besides["value"].notna().all()


def test_the_fit_sees_one_dataset_and_two_methods(found: Figures) -> None:
    calibration = calibrated(found, "GSM8K")
    assert len(calibration.residuals) == 8
    assert all("GSM8K" in label and "EAGLE on" not in label for label in calibration.residuals)
    unseen = Figures(
        tuple(each if each.dataset == "GSM8K" else Figure(each.method, each.dataset, each.batch, 9.0)
              for each in found.speed_ups),
        found.tokens_per_step, found.first_accepted,
    )  # fmt: skip
    assert calibrated(unseen, "GSM8K").parameters == calibration.parameters


def test_n_gram_drafts_as_often_as_its_first_token_is_right(found: Figures) -> None:
    half = H100_8B.replaced(lookup_hit=0.5)
    assert draft_rate(found, half, "ngram", "ShareGPT") == pytest.approx(0.32)
    assert draft_rate(found, half, "EAGLE-3", "ShareGPT") == 1


def test_an_unpublished_acceptance_comes_from_batch_1(found: Figures) -> None:
    alone = found.of("EAGLE", "GSM8K")[0]
    assert predicted(found, H100_8B, alone) == pytest.approx(alone.speed_up, rel=1e-3)


def test_time_per_token_by_k(table: pd.DataFrame) -> None:
    asked = figures_by_k(table, published.read("model_errors"), "EAGLE-3")
    assert asked.k == (2, 3, 4, 5, 6, 7)
    assert asked.baseline_ms == 7.07
    assert asked.time_per_output_token_ms[1] == 4.09
    calibration, milliseconds = by_k(asked)
    assert milliseconds[3] == pytest.approx(4.09, rel=1e-3)
    assert calibration.free == ("byte_per_s", "launch_s")
    # a position more costs the same again while tokens per step level off
    assert milliseconds[7] > milliseconds[5]


def test_a_ratio_carries_no_bandwidth(found: Figures) -> None:
    from speclab.predict.fit import Measured, Place, fit
    from speclab.predict.parameters import Parameters

    def relative(parameters: Parameters) -> float:
        return predicted(found, parameters, found.of("EAGLE-3", "GSM8K")[0])

    one = [Measured("a ratio", 1.749, relative, Place(1, 4, 250))]
    with pytest.raises(UserError, match="1 measured figures cannot carry 2 parameters"):
        fit(one, H100_8B, ["byte_per_s", "launch_s"], "x")
