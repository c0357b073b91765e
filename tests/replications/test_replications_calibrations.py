"""The model's errors as they are: a change that makes one of them larger has to say so here."""

from __future__ import annotations

import pytest

from speclab.errors import UserError
from speclab.predict.errors import CROSSOVER, SPEED_UP, THROUGHPUT, TIME, Errors
from speclab.replications import calibrations, published

CEILINGS = {
    ("arXiv:2601.11580, Figure 1", "EAGLE-3", "ShareGPT", SPEED_UP): (0.025, 0.05),
    ("arXiv:2601.11580, Figure 1", "EAGLE-3", "GSM8K", SPEED_UP): (0.035, 0.05),
    ("arXiv:2601.11580, Figure 1", "EAGLE", "ShareGPT", SPEED_UP): (0.03, 0.04),
    ("arXiv:2601.11580, Figure 1", "EAGLE", "GSM8K", SPEED_UP): (0.035, 0.04),
    ("arXiv:2601.11580, Figure 1", "ngram", "ShareGPT", SPEED_UP): (0.02, 0.03),
    ("arXiv:2601.11580, Figure 1", "ngram", "GSM8K", SPEED_UP): (0.01, 0.02),
    ("vllm-project/vllm#20780", "EAGLE-3", "MT-Bench", TIME): (0.07, 0.14),
    ("vllm-project/vllm#20780", "EAGLE", "MT-Bench", TIME): (0.03, 0.06),
    ("Lab 9 (report)", "EAGLE-3", "chat", CROSSOVER): (0.07, 0.07),
    ("Lab 9 (report)", "draft model", "chat", CROSSOVER): (0.10, 0.10),
    ("Lab 9 (report)", "EAGLE-3", "chat", THROUGHPUT): (0.03, 0.03),
    ("Lab 9 (report)", "ngram", "chat", SPEED_UP): (0.28, 0.28),
}
"""Mean and worst absolute error that each entry may have."""

CEILINGS_OF_OWN = {
    "draft-4l-k3": 0.12, "eagle3-k3": 0.13, "eagle3-k2": 0.16, "eagle3-k1": 0.20, "eagle3-forced": 0.18,
    "ngram-k8": 0.16, "ngram-k2": 0.08,
}  # fmt: skip
"""Mean absolute error of a speed-up, by arm, on each workload."""


@pytest.fixture(scope="module")
def found() -> list[Errors]:
    return calibrations.validate()


def test_no_error_grew_unnoticed(found: list[Errors]) -> None:
    published_ones = {(each.source, each.method, each.dataset, each.figure): each for each in found}
    for key, (mean, worst) in CEILINGS.items():
        assert published_ones[key].mean_abs_error <= mean, key
        assert abs(published_ones[key].worst_error) <= worst, key
    own = [each for each in found if each.source == "lab cpu-smollm2"]
    assert {each.method for each in own} == set(CEILINGS_OF_OWN)
    assert len(found) == len(CEILINGS) + len(own)  # a new entry gets its ceiling here
    for each in own:
        if each.figure == SPEED_UP:
            assert each.mean_abs_error <= CEILINGS_OF_OWN[each.method], each


def test_the_published_simulator_is_beaten_method_by_method(found: list[Errors]) -> None:
    bars = published.read(calibrations.BESIDES).set_index("id")["value"]
    for method, name in (("EAGLE-3", "eagle3"), ("ngram", "ngram")):
        mean, worst = bars[f"bar-mean-{name}-k3"], bars[f"bar-worst-{name}-k3"]
        ours = [each for each in found if each.method == method and each.source.startswith("arXiv:2601.11580")]
        assert len(ours) == 2
        for each in ours:
            assert each.mean_abs_error < mean
            assert abs(each.worst_error) < abs(worst)


def test_nothing_that_a_fit_saw_counts_as_a_prediction() -> None:
    for each in calibrations.predicted():
        if each.source.startswith("arXiv"):
            assert each.dataset not in each.fitted_on
        if each.source == "lab cpu-smollm2" and each.figure == SPEED_UP:
            assert (each.method, each.dataset, each.cell) not in {
                ("eagle3-k3", "chat", "1 in flight"), ("eagle3-k3", "chat", "16 in flight"),
            }  # fmt: skip


def test_every_calibration_has_a_name() -> None:
    for name in calibrations.CALIBRATIONS:
        assert calibrations.named(name).fit.places
    with pytest.raises(UserError, match="unknown calibration 'h100'; there are lab09, gsm8k, sharegpt, cpu-smollm2"):
        calibrations.named("h100")
